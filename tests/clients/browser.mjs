// browser.mjs - the page in headless Chromium; pictures go to $SHOTS.
// SPDX-License-Identifier: Apache-2.0
import { chromium } from 'playwright-core';
import { assert, check, end, url } from './kit.mjs';

const shots = process.env.SHOTS;
const browser = await chromium.launch({ executablePath: process.env.CHROMIUM, args: ['--no-sandbox', '--disable-gpu'] });
const open = async (options, path = '/') => {
  const context = await browser.newContext(options);
  const page = await context.newPage();
  page.bad = [];
  page.on('pageerror', (e) => page.bad.push(e.message));
  page.on('console', (m) => { if (m.type() === 'error') page.bad.push(m.text()); });
  await page.goto(url + path);
  await page.waitForSelector('#go:not([disabled])', { state: 'attached' });
  return page;
};
const shot = (page, name) => shots && page.screenshot({ path: `${shots}/${name}.png` });
const close = async (page) => {
  assert.deepEqual(page.bad, []);
  await page.context().close();
};
const idle = (page) => page.waitForFunction(() => document.querySelector('#go').textContent === 'Send', null, { timeout: 60000 });

await check('a talk by keyboard', async () => {
  const page = await open({ viewport: { width: 1100, height: 760 } });
  await page.click('#more');
  await page.fill('#k-max_tokens', '12');
  await page.fill('#k-temperature', '0');
  await page.click('#more');
  await page.focus('#text');
  await page.keyboard.type('Tell me a story');
  await page.keyboard.press('Shift+Enter');
  await page.keyboard.type('about a fox.');
  await page.keyboard.press('Enter');
  await idle(page);
  const said = await page.textContent('.message.user');
  assert.equal(said, 'Tell me a story\nabout a fox.');
  const text = await page.textContent('.message.assistant');
  assert.match(text, /12 tokens · [\d.]+ tok\/s · first after [\d.]+ s · cut off: no more tokens were asked for/);
  await shot(page, 'chat-light');
  await page.click('#clear');
  assert.equal(await page.locator('.message').count(), 0);
  await close(page);
});

await check('Esc stops an answer', async () => {
  const page = await open({ colorScheme: 'dark', viewport: { width: 1100, height: 760 } });
  // Over a slow line: the demo model has said all it has to say in 0.15 s.
  const line = await page.context().newCDPSession(page);
  await line.send('Network.emulateNetworkConditions', { offline: false, latency: 0, downloadThroughput: 3000, uploadThroughput: -1 });
  await page.click('.try button');
  await page.waitForFunction(() => document.querySelectorAll('.message.assistant p').length > 0 && document.querySelector('.message.assistant').textContent.length > 40);
  await page.keyboard.press('Escape');
  await idle(page);
  assert.match(await page.textContent('.message.assistant'), /stopped/);
  await shot(page, 'chat-dark');
  await close(page);
});

await check('Markdown becomes elements, HTML stays text', async () => {
  const page = await open({ viewport: { width: 1100, height: 900 } });
  const source = '# One\n\nA **bold** *word*, `code` and [a link](https://example.com).\n\n- first\n- second `x < y`\n\n1. one\n2. two\n\n> said\n> so\n\n```c\nint x = 1 < 2;\n```\n\n<img src=x onerror=alert(1)> a < b & c';
  const html = await page.evaluate((s) => {
    const to = document.querySelector('#talk .column').appendChild(document.createElement('div'));
    to.className = 'message assistant';
    document.querySelector('#hello').hidden = true;
    markdown(to, s);
    return to.innerHTML;
  }, source);
  for (const piece of ['<h3>One</h3>', '<strong>bold</strong>', '<em>word</em>', '<code>code</code>', 'href="https://example.com"', '<li>first</li>', '<code>x &lt; y</code>', '<ol start="1"><li>one</li>', '<blockquote><p>said\nso</p></blockquote>', 'int x = 1 &lt; 2;', '&lt;img src=x onerror=alert(1)&gt; a &lt; b &amp; c'])
    assert.ok(html.includes(piece), `${piece} in ${html}`);
  assert.ok(!html.includes('<img'));
  await shot(page, 'markdown');
  await close(page);
});

await check('no text of an answer is lost or stops the page', async () => {
  const page = await open({ viewport: { width: 1100, height: 900 } });
  const html = (s) => page.evaluate((t) => { const to = document.createElement('div'); markdown(to, t); return to.innerHTML; }, s);
  assert.equal(await html('```ls -l``` lists\n\nall'), '<p><code>ls -l</code> lists</p><p>all</p>');
  assert.ok((await html('```sh\nls\n```\nall')).endsWith('</pre><p>all</p>'));
  assert.ok((await html('> '.repeat(20000) + 'deep')).includes('deep'));
  await close(page);
});

await check('tables and lists in lists are drawn as GitHub draws them', async () => {
  const page = await open({ viewport: { width: 375, height: 900 } });
  const html = (s, more) => page.evaluate(([t, more]) => { const to = document.createElement('div'); markdown(to, t, more); return to.innerHTML; }, [s, more]);
  const row = (tag, ...of) => `<tr>${of.map((c) => `<${tag}>${c}</${tag}>`).join('')}</tr>`;
  const table = (...rows) => `<div class="scroll"><table>${rows.join('')}</table></div>`;
  const plain = (s) => s.replace(/ style="text-align: (\w+);"/g, '').replace(/ style=""/g, '');
  for (const [source, want] of [
    ['| a | b |\n|---|---|\n| 1 | **2** |\n| `x \\| y` | <b>z</b> |', table(row('th', 'a', 'b'), row('td', '1', '<strong>2</strong>'), row('td', '<code>x | y</code>', '&lt;b&gt;z&lt;/b&gt;'))],
    ['before\na | b\n--|:-:\n1\n2|3|4\n\nafter', '<p>before</p>' + table(row('th', 'a', 'b'), row('td', '1', ''), row('td', '2', '3', '4')) + '<p>after</p>'],
    ['|a|\r\n|-|\r\n|1<br>2|\r\n# h', table(row('th', 'a'), row('td', '1<br>2')) + '<h3>h</h3>'],
    ['| a | b |\n|---|\n| 1 |', '<p>| a | b |\n|---|\n| 1 |</p>'], /* as many as there are heads, or it is none */
    ['a | b\n\n| c |', '<p>a | b</p><p>| c |</p>'],
    ['- a\n  - b\n    - c\n  - d\n- e', '<ul><li>a<ul><li>b<ul><li>c</li></ul></li><li>d</li></ul></li><li>e</li></ul>'],
    ['1. a\n  * b\n\n  more\n2. c\n\n3) d\n- e', '<ol start="1"><li>a<ul><li>b</li></ul><p>more</p></li><li>c</li><li>d</li></ol><ul><li>e</li></ul>'],
    ['- a\n\n\n- b\n\ntext', '<ul><li>a</li><li>b</li></ul><p>text</p>'],
    ['2. > q\n   | a |\n   |---|\n   | - |\n3. x', '<ol start="2"><li><blockquote><p>q</p></blockquote>' + table(row('th', 'a'), row('td', '-')) + '</li><li>x</li></ol>'],
    ['* a\n\t+ b\n* c', '<ul><li>a<ul><li>b</li></ul></li><li>c</li></ul>'],
  ])
    assert.equal(plain(await html(source)), want, source);
  assert.match(await html('|a|b|c|\n|:-|:-:|-:|'), /<th>a<\/th><th style="text-align: center;">b<\/th><th style="text-align: right;">c</);
  assert.match(await html('1. Do\n   ```sh\nls\n\n     -l\n   ```\n2. Then'), /^<ol start="1"><li>Do<pre><code>ls\n\n  -l<\/code>.*<li>Then<\/li><\/ol>$/s);
  assert.ok((await html('- '.repeat(20000) + 'deep')).includes('deep'));
  const stairs = Array.from({ length: 300 }, (_, i) => `${' '.repeat(2 * i)}- s${i}`).join('\n');
  assert.equal((await html(stairs)).match(/s\d+/g).length, 300);
  assert.ok((await html('|'.repeat(20000) + '\n' + '|-'.repeat(20000))).length > 20000);
  assert.equal(await page.evaluate(() => {
    const to = document.querySelector('#talk .column').appendChild(document.createElement('div'));
    to.className = 'message assistant';
    document.querySelector('#hello').hidden = true;
    markdown(to, 'Sizes:\n\n| what | how much of it | and what is said of it |\n|:--|--:|:-:|\n| one | 1 | short |\n| two `x` | 200 | a text that is long enough for more than one line |\n\n1. first\n   - in it\n     - deeper\n2. second\n\n| ' + 'wide | '.repeat(20) + '\n' + '|-'.repeat(20) + '|');
    return document.documentElement.scrollWidth <= innerWidth;
  }), true, 'it scrolls sideways');
  await shot(page, 'tables');
  await close(page);
});

await check('what has half arrived does not flicker, and no line of it is lost', async () => {
  const page = await open({ viewport: { width: 1100, height: 900 } });
  const source = 'Two:\n\n| name | size |\n|:--|--:|\n| fox | 1 |\n| hen \\| cock | `2` |\n\n- one\n  - **two**\n\n    three\n- four\n\n  | a |\n  |---|\n  | five |\n\nThe end | so\n';
  const bare = (s) => s.replace(/[\s|:*`\\-]/g, '');
  const drawn = await page.evaluate((s) => Array.from(s, (_, i) => {
    const to = document.createElement('div');
    markdown(to, s.slice(0, i + 1), true);
    return [to.textContent, Array.from(to.querySelectorAll('p, th, td, li'), (e) => e.tagName), Array.from(to.querySelectorAll('p'), (e) => e.textContent)];
  }), source);
  let before = [];
  drawn.forEach(([text, tags, paragraphs], i) => {
    const so_far = source.slice(0, i + 1);
    assert.equal(bare(text), bare(so_far), so_far);
    assert.deepEqual(tags.slice(0, before.length), before, so_far); /* nothing becomes something else */
    assert.ok(paragraphs.every((p) => !p.includes('|') || p.startsWith('The end')), so_far);
    before = tags;
  });
  /* what never became a table is text at the end */
  const last = await page.evaluate(() => ['| a |', '| a | b |\n|--', 'x\n-'].map((s) => { const to = document.createElement('div'); markdown(to, s); return to.innerHTML; }));
  assert.deepEqual(last, ['<p>| a |</p>', '<p>| a | b |\n|--</p>', '<p>x\n-</p>']);
  await close(page);
});

await check('what went wrong is said', async () => {
  const page = await open({ viewport: { width: 1100, height: 900 } });
  const said = async (fulfil) => {
    const n = await page.locator('.message.assistant').count();
    await page.route('**/v1/chat/completions', fulfil);
    await page.click('#text');
    await page.keyboard.type('Hello');
    await page.keyboard.press('Enter');
    await page.waitForFunction((n) => document.querySelectorAll('.message.assistant').length > n && document.querySelector('#go').textContent === 'Send', n);
    await page.unroute('**/v1/chat/completions');
    return page.locator('.message.assistant').last().locator('.error').textContent();
  };
  assert.equal(await said((r) => r.fulfill({ status: 502, contentType: 'text/html', body: '<h1>502</h1>' })), 'no answer: HTTP 502 Bad Gateway');
  assert.equal(await said((r) => r.fulfill({ status: 504, body: '' })), 'no answer: HTTP 504 Gateway Timeout');
  assert.equal(await said((r) => r.fulfill({ status: 429, json: { error: { message: 'later' } } })), 'later');
  assert.equal(await said((r) => r.abort('connectionrefused')), 'the server does not answer');
  assert.equal(await said((r) => r.fulfill({ contentType: 'text/event-stream', body: 'data: {"choices":[{"delta":{"content":"Long"}}]}\n\n' })), 'the answer broke off');
  await shot(page, 'errors');
  await page.context().close();
});

await check('a seed goes with all its digits', async () => {
  const page = await open({ viewport: { width: 1100, height: 500 } });
  await page.click('#more');
  await page.fill('#k-max_tokens', '3');
  for (const [seed, sent] of [['1234567890123456789', '1234567890123456789'], ['007', '7'], ['1e3', '1000']]) {
    await page.fill('#k-seed', seed);
    await page.fill('#text', 'What is {"seed":"12"}?');
    const [asked] = await Promise.all([page.waitForRequest('**/v1/chat/completions'), page.click('#go')]);
    assert.ok(asked.postData().endsWith(`"max_tokens":3,"seed":${sent}}`), asked.postData());
    assert.equal(JSON.parse(asked.postData()).messages.at(-1).content, 'What is {"seed":"12"}?');
    await idle(page);
  }
  await close(page);
});

await check('Stop is there while the state is not', async () => {
  const page = await open({ viewport: { width: 1100, height: 500 } });
  await page.route('**/v1/chat/completions', () => {});
  await page.route('**/state*', (r) => r.abort());
  await page.click('.try button');
  await page.click('#tab-live');
  await page.waitForFunction(() => document.querySelector('#model').textContent.includes('does not answer'));
  await page.click('#tab-chat');
  await page.click('#go:not([disabled])', { timeout: 5000 });
  await idle(page);
  await page.context().close();
});

await check('code is copied without a clipboard, too', async () => {
  const page = await open({ viewport: { width: 1100, height: 500 } });
  await page.evaluate(() => {
    document.addEventListener('copy', () => { document.title = String(getSelection()); });
    Object.defineProperty(navigator, 'clipboard', { value: undefined }); /* as over http from elsewhere */
    document.querySelector('#talk .column').append(codeBlock('int x;\nint y;'));
  });
  await page.click('.copy');
  await page.waitForFunction(() => document.querySelector('.copy').textContent === 'copied');
  assert.equal(await page.title(), 'int x; int y;');
  await close(page);
});

await check('a small screen holds it all', async () => {
  const page = await open({ viewport: { width: 375, height: 667 }, deviceScaleFactor: 2 });
  await page.fill('#text', 'Tell me a story about a brave mouse named Pip.');
  await page.click('#more');
  await page.fill('#k-max_tokens', '20');
  await shot(page, 'small-knobs');
  await page.click('#more');
  await page.click('#go');
  await idle(page);
  assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), 'it scrolls sideways');
  await shot(page, 'small-chat');
  await page.click('#tab-live');
  await page.waitForSelector('.card');
  assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), 'it scrolls sideways');
  await shot(page, 'small-live');
  await close(page);
});

await check('a key is asked for until it is right', async () => {
  const context = await browser.newContext({ viewport: { width: 1100, height: 500 } });
  const page = await context.newPage();
  let asked = 0;
  for (const path of ['**/state*', '**/v1/models'])
    await page.route(path, (r) => { asked++; return r.request().headers().authorization === 'Bearer right' ? r.continue() : r.fulfill({ status: 401, json: { error: { message: 'no' } } }); });
  await page.goto(url);
  await page.waitForSelector('#door:not([hidden])');
  const before = asked;
  await page.waitForTimeout(1500);
  assert.equal(asked, before, 'it asks on without a key');
  await page.fill('#key', 'wrong');
  await page.keyboard.press('Enter');
  await page.waitForFunction(() => document.querySelector('#door').textContent.includes('does not know'));
  await shot(page, 'key');
  await page.fill('#key', ' right ');
  await page.keyboard.press('Enter');
  await page.waitForSelector('#go:not([disabled])');
  assert.ok(await page.isHidden('#door'));
  await context.close();
});

await check('one of several models is chosen; thoughts stand apart', async () => {
  const context = await browser.newContext({ viewport: { width: 1100, height: 500 } });
  const page = await context.newPage();
  let body;
  await page.route('**/v1/models', (r) => r.fulfill({ json: { data: [{ id: 'demo' }, { id: 'org/other' }] } }));
  await page.route('**/v1/chat/completions', (r) => {
    body = r.request().postDataJSON();
    const delta = (d) => `data: ${JSON.stringify({ choices: [{ delta: d }] })}\n\n`;
    return r.fulfill({ contentType: 'text/event-stream', body: delta({ reasoning_content: 'Hm, ' }) + delta({ reasoning_content: 'foxes.' }) + delta({ content: 'A fox.' }) });
  });
  await page.goto(url);
  await page.selectOption('#pick', 'org/other');
  await page.click('.try button');
  await page.waitForFunction(() => document.querySelector('.message.assistant p'));
  assert.equal(body.model, 'org/other');
  assert.equal(await page.textContent('.thought div'), 'Hm, foxes.');
  assert.equal(await page.textContent('.message.assistant p'), 'A fox.');
  await context.close();
});

await check('a model that rests is asked', async () => {
  const context = await browser.newContext({ viewport: { width: 1100, height: 500 } });
  const page = await context.newPage();
  await page.route('**/state*', (r) => r.fulfill({ json: { uptime_s: 1, connections: 1, awaiting: 0, comes: true, latency_ms: {} } }));
  await page.goto(url);
  await page.waitForFunction(() => document.querySelector('#model').textContent.includes('when it is asked'));
  await page.fill('#text', 'Tell me a story.');
  await page.click('#go:not([disabled])');
  await page.waitForFunction(() => document.querySelector('.message.assistant p'));
  await context.close();
});

await check('a chosen model that is gone is let go', async () => {
  const context = await browser.newContext({ viewport: { width: 1100, height: 500 } });
  const page = await context.newPage();
  let here = true;
  await page.route('**/v1/models', (r) => r.fulfill({ json: { data: [{ id: 'demo' }, ...(here ? [{ id: 'other' }] : [])] } }));
  await page.goto(url + '/#live');
  await page.waitForSelector('#pick:not([hidden])');
  here = false;
  await page.selectOption('#pick', 'other'); /* the server has none */
  await page.waitForFunction(() => document.querySelector('#pick').hidden);
  await page.waitForSelector('.card');
  assert.ok(!(await page.textContent('#cards')).includes('of its own'));
  await context.close();
});

await check('behind a proxy without a state one can talk', async () => {
  const context = await browser.newContext({ viewport: { width: 1100, height: 500 } });
  const page = await context.newPage();
  await page.route('**/state*', (r) => r.fulfill({ status: 404, body: '' }));
  await page.goto(url);
  await page.waitForFunction(() => document.querySelector('#cards').textContent.includes('of its own'));
  await page.click('.try button');
  await page.waitForFunction(() => document.querySelector('.message.assistant p'));
  await context.close();
});

await check('tenants and their shares are drawn', async () => {
  const page = await open({ viewport: { width: 1100, height: 820 } }, '/#live');
  await page.waitForSelector('.card');
  await page.evaluate(() => drawTenants([{ id: 7, class: 'batch', running: 2, waiting: 1, pages: 9, share: { slots: 0.5, pages: 0.1, rate: 0.2 } }]));
  assert.match(await page.textContent('#tenants'), /750\u00a0% of its slotsbatch219/);
  await close(page);
});

await check('the live state moves', async () => {
  const page = await open({ viewport: { width: 1100, height: 820 } }, '/#live');
  await page.waitForSelector('.card');
  const made = () => page.evaluate(async () => (await (await fetch('/state')).json()).out_tokens);
  const before = await made();
  await page.evaluate(() => fetch('/v1/completions', { method: 'POST', body: '{"prompt":"Once","max_tokens":5}' }).then((r) => r.json()));
  assert.equal(await made(), before + 5);
  await page.waitForTimeout(2200);
  await shot(page, 'live-light');
  await close(page);
  const dark = await open({ colorScheme: 'dark', viewport: { width: 1100, height: 820 } }, '/#live');
  await dark.waitForSelector('.card');
  await shot(dark, 'live-dark');
  await close(dark);
});

await browser.close();
end();
