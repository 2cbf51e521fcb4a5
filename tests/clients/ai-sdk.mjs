// ai-sdk.mjs - Vercel's AI SDK, as coding agents use it.
// SPDX-License-Identifier: Apache-2.0
import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { generateText, streamText } from 'ai';
import { assert, check, end, hello, key, url } from './kit.mjs';

const brass = createOpenAICompatible({ name: 'brass', baseURL: `${url}/v1`, apiKey: key, includeUsage: true });
const base = { model: brass('demo'), messages: hello, maxOutputTokens: 8, temperature: 0, maxRetries: 0 };
let whole = '';

await check('generateText', async () => {
  const r = await generateText({ ...base, system: 'You tell stories.' });
  assert.ok(r.text.length > 5);
  assert.equal(r.finishReason, 'length');
  whole = (await generateText(base)).text;
});

await check('streamText', async () => {
  const r = streamText(base);
  let text = '';
  for await (const t of r.textStream) text += t;
  assert.equal(text, whole);
  assert.equal(await r.finishReason, 'length');
  assert.equal((await r.usage).outputTokens, 8);
});

await check('completion model', async () => {
  const r = await generateText({ model: brass.completionModel('demo'), prompt: 'Once upon a time', maxOutputTokens: 4, temperature: 0, maxRetries: 0 });
  assert.ok(r.text.length > 0);
});

await check('an error is an error', async () => {
  await assert.rejects(generateText({ ...base, model: brass('other') }), (e) => e.statusCode === 404 && /other/.test(e.message));
});

end();
