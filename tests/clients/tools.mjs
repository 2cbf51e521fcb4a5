// tools.mjs - calls of tools, through the clients' own helpers. The template is
// tools.jinja; the model has learnt no calls, so each one here is enforced.
// SPDX-License-Identifier: Apache-2.0
import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { generateText, streamText, tool } from 'ai';
import Anthropic from '@anthropic-ai/sdk';
import OpenAI from 'openai';
import { zodFunction } from 'openai/helpers/zod';
import { z } from 'zod';
import { assert, check, end, hello, key, url } from './kit.mjs';

const ai = new OpenAI({ baseURL: `${url}/v1`, apiKey: key, maxRetries: 0 });
const brass = createOpenAICompatible({ name: 'brass', baseURL: `${url}/v1`, apiKey: key, includeUsage: true });
const args = z.object({ city: z.enum(['Oslo', 'Rome', 'Kyoto']), days: z.number().int().min(1).max(9) });
const weather = zodFunction({ name: 'weather', parameters: args });
const tools = [weather, { type: 'function', function: { name: "sleep", strict: true, parameters: { type: 'object', properties: { hours: { type: 'integer', minimum: 0, maximum: 99 } }, required: ['hours'], additionalProperties: false } } }];
const base = { model: 'demo', messages: hello, tools, max_tokens: 200, temperature: 1.2, seed: 5 };

await check('required: a call that parses', async () => {
  for (let seed = 0; seed < 6; seed++) {
    const r = await ai.chat.completions.create({ ...base, seed, tool_choice: 'required', parallel_tool_calls: false });
    const m = r.choices[0].message;
    assert.equal(r.choices[0].finish_reason, 'tool_calls');
    assert.equal(m.content, null);
    assert.equal(m.tool_calls.length, 1);
    if (m.tool_calls[0].function.name === 'weather') args.parse(JSON.parse(m.tool_calls[0].function.arguments));
    else assert.equal(typeof JSON.parse(m.tool_calls[0].function.arguments).hours, 'number');
  }
});

await check('named, through the parse helper', async () => {
  const r = await ai.chat.completions.parse({ ...base, tool_choice: { type: 'function', function: { name: 'weather' } } });
  args.parse(r.choices[0].message.tool_calls[0].function.parsed_arguments);
});

await check('a stream of argument pieces, through the stream helper', async () => {
  const s = ai.chat.completions.stream({ ...base, tool_choice: 'required', parallel_tool_calls: false });
  let pieces = 0;
  s.on('tool_calls.function.arguments.delta', () => pieces++);
  const m = (await s.finalChatCompletion()).choices[0].message;
  const one = await ai.chat.completions.create({ ...base, tool_choice: 'required', parallel_tool_calls: false });
  assert.ok(pieces > 1);
  assert.equal(m.tool_calls[0].function.arguments, one.choices[0].message.tool_calls[0].function.arguments);
});

await check('the result of a call goes back', async () => {
  const r = await ai.chat.completions.create({ ...base, tool_choice: 'required', parallel_tool_calls: false });
  const call = r.choices[0].message;
  const then = await ai.chat.completions.create({ ...base, max_tokens: 8, messages: [...hello, call, { role: 'tool', tool_call_id: call.tool_calls[0].id, content: 'sunny' }] });
  assert.ok(['length', 'stop', 'tool_calls'].includes(then.choices[0].finish_reason));
});

await check('the AI SDK runs a tool', async () => {
  const t = { weather: tool({ inputSchema: args, execute: async ({ city }) => `sun in ${city}` }) };
  const common = { model: brass('demo'), messages: hello, tools: t, toolChoice: 'required', maxOutputTokens: 200, temperature: 1, seed: 2, maxRetries: 0 };
  const r = await generateText(common);
  assert.match(r.toolResults[0].output, /^sun in (Oslo|Rome|Kyoto)$/);
  const s = streamText(common);
  await s.consumeStream();
  args.parse((await s.toolCalls)[0].input);
});

const claude = new Anthropic({ baseURL: url, apiKey: key, maxRetries: 0 });
const use = { model: 'demo', messages: hello, max_tokens: 200, temperature: 1, tools: [{ name: 'weather', description: 'the weather', input_schema: weather.function.parameters }], tool_choice: { type: 'any', disable_parallel_tool_use: true } };

await check('Anthropic: a tool_use block, and its result goes back', async () => {
  const r = await claude.messages.create(use);
  assert.equal(r.stop_reason, 'tool_use');
  assert.deepEqual(r.content.map((b) => b.type), ['tool_use']);
  args.parse(r.content[0].input);
  const then = await claude.messages.create({ ...use, max_tokens: 6, tool_choice: { type: 'auto' }, messages: [...hello, { role: 'assistant', content: r.content }, { role: 'user', content: [{ type: 'tool_result', tool_use_id: r.content[0].id, content: 'rain' }, { type: 'text', text: 'And now?' }] }] });
  assert.ok(['end_turn', 'max_tokens', 'tool_use'].includes(then.stop_reason));
});

await check('Anthropic: input_json_delta through the stream helper', async () => {
  const s = claude.messages.stream({ ...use, tool_choice: { type: 'tool', name: 'weather' } });
  let pieces = 0;
  s.on('inputJson', () => pieces++);
  const m = await s.finalMessage();
  assert.ok(pieces > 1);
  assert.equal(m.stop_reason, 'tool_use');
  args.parse(m.content.at(-1).input);
});

// ---- responses
const flat = tools.map((t) => ({ type: 'function', ...t.function, strict: true }));
const ask = { model: 'demo', input: 'Hello there', tools: flat, max_output_tokens: 200, temperature: 1.2, tool_choice: 'required', parallel_tool_calls: false };

await check('responses: a call, and its output goes back', async () => {
  const r = await ai.responses.create(ask);
  assert.deepEqual(r.output.map((i) => i.type), ['function_call']);
  const call = r.output[0];
  assert.equal(call.status, 'completed');
  JSON.parse(call.arguments);
  const then = await ai.responses.create({ ...ask, max_output_tokens: 20, tool_choice: 'auto', input: [{ role: 'user', content: 'Hello' }, ...r.output, { type: 'function_call_output', call_id: call.call_id, output: 'sunny' }] });
  assert.ok(then.usage.input_tokens > r.usage.input_tokens);
});

await check('responses: argument pieces through the stream helper', async () => {
  const s = ai.responses.stream({ ...ask, tool_choice: { type: 'function', name: 'weather' } });
  let pieces = '';
  s.on('response.function_call_arguments.delta', (e) => (pieces += e.delta));
  const r = await s.finalResponse();
  assert.equal(r.output[0].arguments, pieces);
  args.parse(r.output[0].parsed_arguments ?? JSON.parse(pieces));
});

end();
