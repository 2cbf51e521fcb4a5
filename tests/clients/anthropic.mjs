// anthropic.mjs - Anthropic's own client.
// SPDX-License-Identifier: Apache-2.0
import Anthropic from '@anthropic-ai/sdk';
import { assert, check, end, hello, key, url } from './kit.mjs';

const ai = new Anthropic({ baseURL: url, apiKey: key, maxRetries: 0 });
const base = { model: 'demo', messages: hello, max_tokens: 8, temperature: 0 };
let whole = '';

await check('messages', async () => {
  const r = await ai.messages.create(base);
  whole = r.content[0].text;
  assert.ok(whole.length > 10);
  assert.equal(r.stop_reason, 'max_tokens');
  assert.equal(r.usage.output_tokens, 8);
  assert.equal(r._request_id, r.id);
});

await check('messages, streamed', async () => {
  const kinds = [];
  let text = '';
  for await (const e of await ai.messages.create({ ...base, stream: true })) {
    kinds.push(e.type);
    if (e.type === 'content_block_delta') text += e.delta.text;
  }
  assert.equal(text, whole);
  assert.equal(kinds[0], 'message_start');
  assert.equal(kinds.at(-1), 'message_stop');
});

await check('messages through the stream helper', async () => {
  const m = await ai.messages.stream(base).finalMessage();
  assert.equal(m.content[0].text, whole);
  assert.equal(m.stop_reason, 'max_tokens');
});

await check('stop sequences', async () => {
  const r = await ai.messages.create({ ...base, max_tokens: 100, stop_sequences: ['.'] });
  assert.equal(r.stop_reason, 'stop_sequence');
  assert.equal(r.stop_sequence, '.');
});

await check('count_tokens', async () => {
  const r = await ai.messages.countTokens({ model: 'demo', messages: hello });
  assert.ok(r.input_tokens > 5);
});

await check('errors have the right class', async () => {
  await assert.rejects(ai.messages.create({ ...base, tools: [{ name: 'f', input_schema: { type: 'object' } }] }), Anthropic.BadRequestError);
  await assert.rejects(ai.messages.create({ ...base, model: 'other' }), Anthropic.NotFoundError);
  await assert.rejects(ai.messages.create({ ...base, model: 'other' }), (e) => e.requestID.startsWith('req_'));
});

end();
