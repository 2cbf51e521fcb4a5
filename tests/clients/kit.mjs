// kit.mjs - what the scripts here share: checks that are counted.
// SPDX-License-Identifier: Apache-2.0
import assert from 'node:assert/strict';

export { assert };
export const url = process.env.BRASS_URL;
export const key = 'none-is-needed-here';
export const hello = [{ role: 'user', content: 'Tell me a story about a fox.' }];

let passed = 0, failed = 0;

export const check = async (name, fn) => {
  try {
    await fn();
    passed++;
    console.log(`ok   ${name}`);
  } catch (e) {
    failed++;
    console.log(`FAIL ${name}\n     ${e.stack}`);
  }
};

export const end = () => {
  console.log(`${passed} passed, ${failed} failed`);
  process.exitCode = failed ? 1 : 0;
};
