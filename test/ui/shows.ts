import { setTimeout as sleep } from 'node:timers/promises';
import { isDeepStrictEqual } from 'node:util';
import type { Test } from 'tap';

const deadlineMs = 300_000;
/** Time after which a finding about the layout is a defect. */
const layoutMs = 20_000;
const pauseMs = 20;

const holds = {
  ok: (found: unknown) => Boolean(found),
  equal: Object.is,
  same: isDeepStrictEqual,
  match: (found: unknown, expected: unknown) =>
    expected instanceof RegExp ? expected.test(String(found)) : String(found).includes(String(expected)),
} satisfies Record<string, (found: unknown, expected: unknown) => boolean>;

/**
 * Asserts the contents of the page. It reads until the assertion holds, and asserts the last reading when it does not hold before a
 * deadline that only a hang reaches: a page that is fed by several requests and streams shows its parts in any order.
 * `read` must change nothing.
 */
export async function shows(
  t: Test,
  assertion: keyof typeof holds,
  read: () => Promise<unknown>,
  expected?: unknown,
  message = 'the page shows it',
): Promise<void> {
  const deadline = Date.now() + deadlineMs;
  let found = await read();
  while (!holds[assertion](found, expected) && Date.now() < deadline) {
    await sleep(pauseMs);
    found = await read();
  }
  if (assertion === 'ok') t.ok(found, typeof expected === 'string' ? expected : message);
  else if (assertion === 'match') t.match(found, expected as RegExp, message);
  else t[assertion](found, expected, message);
}

/**
 * Findings that remain: elements that follow the size of their box are drawn some frames after it has changed. `read` must change
 * nothing.
 */
export async function remaining<Finding>(read: () => Promise<readonly Finding[]>): Promise<readonly Finding[]> {
  const deadline = Date.now() + layoutMs;
  let findings = await read();
  while (findings.length > 0 && Date.now() < deadline) {
    await sleep(pauseMs);
    findings = await read();
  }
  return findings;
}
