// openai.mjs - OpenAI's own client.
// SPDX-License-Identifier: Apache-2.0
import { Ajv } from 'ajv';
import OpenAI from 'openai';
import { zodResponseFormat, zodTextFormat } from 'openai/helpers/zod';
import { z } from 'zod';
import { assert, check, end, hello, key, url } from './kit.mjs';

const ai = new OpenAI({ baseURL: `${url}/v1`, apiKey: key, maxRetries: 0 });
const base = { model: 'demo', messages: hello, max_tokens: 8, temperature: 0 };
let whole = '';

await check('models', async () => {
  const ids = [];
  for await (const m of ai.models.list()) ids.push(m.id);
  assert.deepEqual(ids, ['demo']);
});

await check('chat', async () => {
  const r = await ai.chat.completions.create(base);
  whole = r.choices[0].message.content;
  assert.ok(whole.length > 10);
  assert.equal(r.choices[0].finish_reason, 'length');
  assert.equal(r.usage.completion_tokens, 8);
  assert.equal(r.usage.total_tokens, r.usage.prompt_tokens + 8);
  assert.equal(r._request_id, r.id);
});

await check('chat, streamed, says the same', async () => {
  const s = await ai.chat.completions.create({ ...base, stream: true, stream_options: { include_usage: true } });
  let text = '', end = '', usage;
  for await (const c of s) {
    text += c.choices[0]?.delta?.content ?? '';
    end = c.choices[0]?.finish_reason ?? end;
    usage = c.usage ?? usage;
  }
  assert.equal(text, whole);
  assert.equal(end, 'length');
  assert.equal(usage.completion_tokens, 8);
});

await check('chat through the stream helper', async () => {
  const s = ai.chat.completions.stream(base);
  const r = await s.finalChatCompletion();
  assert.equal(r.choices[0].message.content, whole);
});

await check('n, seed, stop, logprobs', async () => {
  const ask = { ...base, n: 2, seed: 7, temperature: 1, logprobs: true, top_logprobs: 2, stop: ['.'] };
  const a = await ai.chat.completions.create(ask), b = await ai.chat.completions.create(ask);
  assert.deepEqual(a.choices.map((c) => c.message.content), b.choices.map((c) => c.message.content));
  const l = a.choices[0].logprobs.content;
  assert.ok(l.length > 0 && l[0].top_logprobs.length === 2 && l[0].logprob <= 0);
  assert.ok(!a.choices[0].message.content.includes('.'));
});

await check('stop strings over the borders of tokens', async () => {
  const l = (await ai.chat.completions.create({ ...base, max_tokens: 24, logprobs: true })).choices[0];
  const text = l.message.content, tokens = l.logprobs.content.map((t) => t.token);
  assert.equal(tokens.join('').trimStart(), text.trimStart());
  for (let i = 2; i < 20; i++) { // the end of one token and the beginning of the next
    const stop = tokens[i].slice(-2) + tokens[i + 1].slice(0, 2);
    const r = await ai.chat.completions.create({ ...base, max_tokens: 24, stop });
    assert.equal(r.choices[0].message.content, text.slice(0, text.indexOf(stop)));
    assert.equal(r.choices[0].finish_reason, 'stop');
    let streamed = '';
    for await (const c of await ai.chat.completions.create({ ...base, max_tokens: 24, stop, stream: true })) streamed += c.choices[0]?.delta?.content ?? '';
    assert.equal(streamed, r.choices[0].message.content);
  }
});

await check('n choices of a stream are those of a document', async () => {
  const ask = { ...base, n: 3, seed: 7, temperature: 1, logprobs: true, top_logprobs: 2 };
  const doc = await ai.chat.completions.create(ask), text = ['', '', ''], rows = [[], [], []];
  for await (const c of await ai.chat.completions.create({ ...ask, stream: true }))
    for (const o of c.choices) {
      text[o.index] += o.delta.content ?? '';
      rows[o.index].push(...(o.logprobs?.content ?? []));
    }
  assert.deepEqual(text, doc.choices.map((c) => c.message.content));
  assert.deepEqual(rows, doc.choices.map((c) => c.logprobs.content));
  assert.equal(new Set(text).size, 3);
  const t = await ai.completions.create({ model: 'demo', prompt: 'Once', n: 2, max_tokens: 4, logprobs: 3, temperature: 1, seed: 1 });
  for (const c of t.choices) {
    assert.equal(c.logprobs.tokens.length, 4);
    assert.equal(c.logprobs.tokens.join(''), c.text);
    assert.deepEqual(c.logprobs.text_offset, c.logprobs.tokens.map((_, i) => c.logprobs.tokens.slice(0, i).join('').length));
    c.logprobs.top_logprobs.forEach((o, i) => assert.ok(Object.keys(o).length <= 4 && c.logprobs.tokens[i] in o));
  }
});

await check('logprobs of responses', async () => {
  const ask = { model: 'demo', input: hello, max_output_tokens: 8, temperature: 0, include: ['message.output_text.logprobs'], top_logprobs: 2 };
  const r = await ai.responses.create(ask), rows = [];
  const l = r.output[0].content[0].logprobs;
  assert.equal(l.length, 8);
  assert.equal(l[0].top_logprobs[0].token, l[0].token);
  for await (const e of await ai.responses.create({ ...ask, stream: true })) {
    if (e.type === 'response.output_text.delta') rows.push(...e.logprobs);
    if (e.type === 'response.incomplete') assert.deepEqual(e.response.output[0].content[0].logprobs, l);
  }
  assert.deepEqual(rows, l.slice(0, rows.length));
});

await check('completions', async () => {
  const r = await ai.completions.create({ model: 'demo', prompt: ['Once upon', 'A fox'], max_tokens: 3, temperature: 0, echo: true });
  assert.equal(r.choices.length, 2);
  assert.ok(r.choices[0].text.startsWith('Once upon'));
});

await check('responses', async () => {
  const r = await ai.responses.create({ model: 'demo', input: hello[0].content, max_output_tokens: 8, temperature: 0 });
  assert.equal(r.output_text, whole);
  assert.equal(r.status, 'incomplete');
  const kinds = [];
  for await (const e of await ai.responses.create({ model: 'demo', input: hello, max_output_tokens: 8, temperature: 0, stream: true })) {
    assert.equal(e.sequence_number, kinds.length);
    kinds.push(e.type);
    if (e.type === 'response.incomplete') assert.equal(e.response.output[0].content[0].text, whole);
  }
  assert.equal(kinds.at(-1), 'response.incomplete');
});

await check('responses through the stream helper', async () => {
  const r = await ai.responses.stream({ model: 'demo', input: hello[0].content, max_output_tokens: 8, temperature: 0 }).finalResponse();
  assert.equal(r.output_text, whole);
});

await check('responses that go on from one another, and go', async () => {
  const a = await ai.responses.create({ model: 'demo', input: hello, max_output_tokens: 8, temperature: 0 });
  const b = await ai.responses.create({ model: 'demo', input: 'And then?', previous_response_id: a.id, max_output_tokens: 8 });
  assert.equal(b.previous_response_id, a.id);
  assert.equal((await ai.responses.retrieve(a.id)).output_text, a.output_text);
  for await (const item of ai.responses.inputItems.list(b.id)) assert.equal(item.content[0].text, 'And then?');
  await ai.responses.delete(a.id);
  await assert.rejects(ai.responses.retrieve(a.id), OpenAI.NotFoundError);
});

const over = async (id) => {
  for (let i = 0; i < 200; i++) {
    const r = await ai.responses.retrieve(id);
    if (r.status !== 'queued' && r.status !== 'in_progress') return r;
    await new Promise((f) => setTimeout(f, 20));
  }
  assert.fail('it is not over');
};

await check('responses in background: polled, cancelled, deleted', async () => {
  const ask = { model: 'demo', input: hello, max_output_tokens: 8, temperature: 0, background: true };
  const r = await ai.responses.create(ask);
  assert.equal(r.status, 'queued');
  assert.equal(r.background, true);
  const done = await over(r.id);
  assert.equal(done.status, 'incomplete');
  assert.equal(done.output_text, whole);
  const long = await ai.responses.create({ ...ask, max_output_tokens: 900 });
  assert.equal((await ai.responses.cancel(long.id)).status, 'cancelled');
  assert.equal((await over(long.id)).status, 'cancelled');
  await ai.responses.delete(long.id);
  await assert.rejects(ai.responses.retrieve(long.id), OpenAI.NotFoundError);
  await assert.rejects(ai.responses.create({ ...ask, store: false }), (e) => e instanceof OpenAI.BadRequestError && e.param === 'background');
});

await check('responses in background: a stream that is left and come back to', async () => {
  const ask = { model: 'demo', input: hello, max_output_tokens: 60, temperature: 0, background: true, stream: true };
  let id, last, text = '';
  for await (const e of await ai.responses.create(ask)) {
    if (e.type === 'response.created') id = e.response.id;
    if (e.type === 'response.output_text.delta') text += e.delta;
    last = e.sequence_number;
    if (text.length > 20) break; // closes the connection
  }
  for await (const e of await ai.responses.retrieve(id, { stream: true, starting_after: last })) {
    assert.equal(e.sequence_number, last + 1);
    last = e.sequence_number;
    if (e.type === 'response.output_text.delta') text += e.delta;
  }
  const done = await over(id);
  assert.equal(text, done.output_text);
  const all = await ai.responses.stream({ response_id: id }).finalResponse();
  assert.equal(all.output_text, done.output_text);
  await ai.responses.delete(id);
  await assert.rejects(ai.responses.retrieve(id, { stream: true }), OpenAI.NotFoundError);
});

await check('conversations: made, spoken in, listed, changed, gone', async () => {
  const made = await ai.conversations.create({ metadata: { topic: 'foxes' }, items: [{ type: 'message', role: 'user', content: 'I like foxes.' }] });
  assert.equal(made.object, 'conversation');
  const ask = { model: 'demo', conversation: made.id, max_output_tokens: 8, temperature: 0 };
  const a = await ai.responses.create({ ...ask, input: 'Tell me of one.' });
  assert.equal(a.conversation.id, made.id);
  const b = await over((await ai.responses.create({ ...ask, input: 'And then?', background: true })).id);
  const hand = await ai.responses.create({ ...ask, conversation: undefined, input: [
    { role: 'user', content: 'I like foxes.' }, { role: 'user', content: 'Tell me of one.' }, ...a.output, { role: 'user', content: 'And then?' }] });
  assert.equal(b.output_text, hand.output_text);
  const items = [];
  for await (const i of ai.conversations.items.list(made.id, { order: 'asc', limit: 2 })) items.push(i);
  assert.deepEqual(items.map((i) => `${i.role} ${i.content[0].type}`), ['user input_text', 'user input_text', 'assistant output_text', 'user input_text', 'assistant output_text']);
  assert.equal(items[2].content[0].text, a.output_text);
  assert.equal((await ai.conversations.items.retrieve(items[1].id, { conversation_id: made.id })).content[0].text, 'Tell me of one.');
  await ai.conversations.items.delete(items[1].id, { conversation_id: made.id });
  const more = await ai.conversations.items.create(made.id, { items: [{ type: 'message', role: 'user', content: 'Bye.' }] });
  assert.equal(more.data[0].content[0].text, 'Bye.');
  const newest = await ai.conversations.items.list(made.id);
  assert.equal(newest.data.length, 5);
  assert.equal(newest.data[0].id, more.last_id);
  assert.equal((await ai.conversations.update(made.id, { metadata: { topic: 'hens' } })).metadata.topic, 'hens');
  assert.equal((await ai.conversations.retrieve(made.id)).created_at, made.created_at);
  assert.equal((await ai.conversations.delete(made.id)).deleted, true);
  await assert.rejects(ai.conversations.retrieve(made.id), OpenAI.NotFoundError);
  await assert.rejects(ai.responses.create({ ...ask, input: 'x' }), (e) => e instanceof OpenAI.BadRequestError && e.param === 'conversation');
});

const zoo = z.object({
  name: z.string().max(12),
  legs: z.number().int().min(0).max(8),
  kind: z.enum(['fox', 'cat', 'hen']),
  tags: z.array(z.string().max(8)).max(3),
  home: z.object({ size: z.number().min(1).max(99), warm: z.boolean() }).nullable(),
});

await check('structured outputs through the parse helper', async () => {
  const format = zodResponseFormat(zoo, 'animal');
  const valid = new Ajv({ strict: false }).compile(format.json_schema.schema);
  for (let seed = 0; seed < 8; seed++) {
    const r = await ai.chat.completions.parse({ model: 'demo', messages: hello, response_format: format, max_tokens: 400, temperature: 1.5, seed, min_p: 0, top_p: 1 });
    assert.equal(r.choices[0].finish_reason, 'stop');
    zoo.parse(r.choices[0].message.parsed);
    assert.ok(valid(JSON.parse(r.choices[0].message.content)), JSON.stringify(valid.errors));
  }
});

await check('structured outputs of responses', async () => {
  const r = await ai.responses.parse({ model: 'demo', input: hello, max_output_tokens: 400, temperature: 0, text: { format: zodTextFormat(zoo, 'animal') } });
  zoo.parse(r.output_parsed);
});

await check('json_object is an object', async () => {
  const r = await ai.chat.completions.create({ model: 'demo', messages: hello, response_format: { type: 'json_object' }, max_tokens: 300, temperature: 0, seed: 3, logit_bias: {} });
  if (r.choices[0].finish_reason === 'stop') assert.equal(typeof JSON.parse(r.choices[0].message.content), 'object');
});

await check('embeddings: both encodings, many inputs, fewer dimensions', async () => {
  const dot = (a, b) => a.reduce((s, x, i) => s + x * b[i], 0);
  const input = Array.from({ length: 40 }, (_, i) => `The fox number ${i} runs.`);
  const floats = await ai.embeddings.create({ model: 'demo', input, encoding_format: 'float' });
  const packed = await ai.embeddings.create({ model: 'demo', input }); // the client asks for base64
  assert.equal(floats.data.length, 40);
  assert.equal(floats.usage.prompt_tokens, floats.usage.total_tokens);
  assert.ok(floats.usage.prompt_tokens > 40 * 4);
  floats.data.forEach((d, i) => {
    assert.equal(d.index, i);
    assert.ok(Math.abs(dot(d.embedding, d.embedding) - 1) < 1e-5);
    assert.ok(dot(d.embedding, packed.data[i].embedding) > 0.99999);
  });
  const one = (await ai.embeddings.create({ model: 'demo', input: input[7], dimensions: 16 })).data[0].embedding;
  const cut = floats.data[7].embedding.slice(0, 16);
  assert.equal(one.length, 16);
  assert.ok(Math.abs(dot(one, cut) / Math.sqrt(dot(cut, cut)) - 1) < 1e-5);
});

// zod says pattern beside format, and minLength beside pattern.
await check('texts and numbers as zod describes them', async () => {
  const kinds = {
    mail: z.email(), id: z.uuid(), when: z.iso.datetime(), day: z.iso.date(), v4: z.ipv4(), v6: z.ipv6(), code: z.string().regex(/^[A-Z]+-\d+$/).min(4).max(8),
    int: z.int().min(-5).max(5), part: z.number().min(0.25).max(0.75), cents: z.number().multipleOf(0.01).min(0).max(99.99), seven: z.int().multipleOf(7).min(1).max(99),
  };
  for (const [name, kind] of Object.entries(kinds)) {
    const shape = z.object({ it: kind });
    const r = await ai.chat.completions.parse({ ...base, max_tokens: 600, temperature: 1, seed: 5, response_format: zodResponseFormat(shape, name) });
    if (r.choices[0].finish_reason === 'stop') shape.parse(r.choices[0].message.parsed);
  }
});

await check('errors have the right class', async () => {
  await assert.rejects(ai.chat.completions.create({ ...base, model: 'gpt-4' }), (e) => e instanceof OpenAI.NotFoundError && e.code === 'model_not_found' && e.param === 'model' && e.requestID.startsWith('req_'));
  await assert.rejects(ai.chat.completions.create({ ...base, temperature: 9 }), (e) => e instanceof OpenAI.BadRequestError && e.param === 'temperature');
  const schema = { type: 'object', properties: { a: { not: { type: 'null' } } } };
  await assert.rejects(ai.chat.completions.create({ ...base, response_format: { type: 'json_schema', json_schema: { name: 'x', schema } } }), (e) => e instanceof OpenAI.BadRequestError && /'not' at '#\/properties\/a'/.test(e.message));
  await assert.rejects(ai.embeddings.create({ model: 'demo', input: 'x', dimensions: 1e6 }), (e) => e instanceof OpenAI.BadRequestError && e.param === 'dimensions');
});

await check('abort frees the slot', async () => {
  const c = new AbortController();
  const s = await ai.chat.completions.create({ ...base, max_tokens: 900, stream: true }, { signal: c.signal });
  for await (const _ of s) { c.abort(); break; }
  for (let i = 0; i < 50; i++) {
    const state = await (await fetch(`${url}/state`)).json();
    if (state.running === 0) return;
    await new Promise((f) => setTimeout(f, 100));
  }
  assert.fail('it still runs');
});

end();
