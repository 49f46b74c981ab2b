/** Hooks as programs: real shells with real ends. */
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import t, { type Test } from 'tap';
import * as v from 'valibot';
import { matches } from '../../../src/agent/hooks/matcher.ts';
import { Hooks, userCommands } from '../../../src/agent/index.ts';
import { HookSettings } from '../../../src/config/hook-settings.ts';
import { type HookEvent, hookEvents } from '../../../src/config/index.ts';
import { until } from '../../supervise/helpers.ts';
import { temporaryWorkspace } from '../tools/run-tool.ts';

const key = 'sk-a-key-of-the-user';
const environment = { ...process.env, ORATORIO_TEST_MARK: 'kept', SOME_API_KEY: key };
const never = new AbortController().signal;

/** Waits until the process whose id is in a file has ended: a signal needs its time. A zombie has ended. */
const ends = (file: string) =>
  until(`the process in ${file} ends`, () => {
    try {
      return /^State:\tZ/m.test(readFileSync(`/proc/${Number(readFileSync(file, 'utf8'))}/status`, 'utf8'));
    } catch {
      return true;
    }
  });

/** Hooks of one moment, and a way to reach it. */
function stage(t: Test, event: HookEvent, ...hooks: { Command: string; Matcher?: string; TimeoutMs?: number }[]) {
  const cwd = temporaryWorkspace(t);
  const settings = v.parse(HookSettings, { [event]: hooks });
  const made = new Hooks(settings, userCommands({ environment, passEnvironment: [], secrets: [key] }), cwd);
  const run = (facts: { tool_name?: string; prompt?: string } = {}, signal = never) =>
    made.run(
      { hook_event_name: event, session_id: 'thread', turn_id: 'turn', cwd, workspace_path: cwd, ...facts },
      signal,
    );
  return { cwd, run, hooks: made };
}

t.test('a hook reads the moment as JSON from standard input, in the directory of the conversation', async (t) => {
  const { cwd, run } = stage(t, 'UserPromptSubmit', { Command: 'cat; pwd >&2; cat > /dev/null' });
  const { context, reasons, failures } = await run({ prompt: 'Hällo\n"x"' });
  t.same([reasons, failures], [[], []]);
  t.same(JSON.parse(context[0] ?? ''), {
    hook_event_name: 'UserPromptSubmit',
    session_id: 'thread',
    turn_id: 'turn',
    cwd,
    workspace_path: cwd,
    prompt: 'Hällo\n"x"',
  });
});

t.test('exit code 0 gives context, 2 blocks with standard error, and all others fail without blocking', async (t) => {
  const { run } = stage(
    t,
    'PreToolUse',
    { Command: 'echo fine; echo noise >&2' },
    { Command: 'echo ignored; echo no such luck >&2; exit 2' },
    { Command: 'exit 2' },
    { Command: 'echo wrong >&2; exit 1' },
    { Command: 'kill -9 $$' },
    { Command: 'no-such-program-anywhere' },
  );
  const { context, reasons, failures } = await run({ tool_name: 'Exec' });
  t.same(context, ['fine']);
  t.same(reasons, ['no such luck', 'The hook “exit 2” blocked it without a reason']);
  t.equal(failures.length, 3);
  t.match(failures[0], /exit 1” ended with exit code 1, which does not block: wrong$/);
  t.match(failures[1], /was ended by a signal, which does not block$/);
  t.match(failures[2], /ended with exit code 127/);
});

t.test('a directory that is gone is a failure that does not block', async (t) => {
  const { hooks } = stage(t, 'TurnEnd', { Command: 'exit 2' });
  const input = { hook_event_name: 'TurnEnd', session_id: 'a', turn_id: 'b', workspace_path: '/' } as const;
  const { reasons, failures } = await hooks.run({ ...input, cwd: '/no/such/place' }, never);
  t.same([reasons, failures.length], [[], 1]);
});

t.test('a hook has the environment of commands: no keys, and no marks of the terminal', async (t) => {
  const { run } = stage(t, 'SessionStart', { Command: 'env; [ -z "$BASH_ENV" ] && set -o | grep -c interactive' });
  const [text = ''] = (await run()).context;
  t.notMatch(text, key);
  t.notMatch(text, 'SOME_API_KEY');
  t.match(text, /^NO_COLOR=1$/m);
});

t.test('a hook that hangs is ended at its time limit, with its processes', async (t) => {
  const { cwd, run } = stage(t, 'PreToolUse', {
    Command: "trap '' TERM; sleep 3011 & echo $! > child; (setsid sleep 3012 & echo $! > escaped); wait; sleep 3013",
    TimeoutMs: 5_000,
  });
  const { reasons, failures } = await run({ tool_name: 'Exec' });
  t.same(reasons, []);
  t.match(failures, [/was ended after 5000 ms$/]);
  for (const name of ['child', 'escaped']) await ends(join(cwd, name));
});

t.test('background processes of a hook are ended with it', async (t) => {
  const { cwd, run } = stage(t, 'TurnEnd', {
    Command: '(setsid sleep 3014 > /dev/null 2>&1 & echo $! > escaped); sleep 3015 & echo $! > child; echo done',
  });
  t.same((await run()).context, ['done']);
  for (const name of ['child', 'escaped']) await ends(join(cwd, name));
});

t.test('the output of a hook that floods is cut to 10,000 characters', async (t) => {
  const { run } = stage(t, 'SessionStart', { Command: 'head -c 30000000 /dev/zero | tr "\\0" x; exit 0' });
  t.equal((await run()).context[0]?.length, 10_000);
});

t.test('hooks of one moment run side by side, and their words keep the order of the configuration', async (t) => {
  // Each waits for the file of the other one: in a row they would run out of time.
  const { run } = stage(
    t,
    'SessionStart',
    { Command: 'touch one; until [ -e two ]; do sleep 0.02; done; sleep 0.1; echo first' },
    { Command: 'touch two; until [ -e one ]; do sleep 0.02; done; echo second' },
  );
  t.same((await run()).context, ['first', 'second']);
});

t.test('an interrupt ends the hooks and rejects', async (t) => {
  const { cwd, run } = stage(t, 'PreToolUse', { Command: 'echo $$ > pid; exec sleep 3016' });
  const interrupt = new AbortController();
  const running = run({ tool_name: 'Exec' }, interrupt.signal);
  await until('the hook runs', () => existsSync(join(cwd, 'pid')) && readFileSync(join(cwd, 'pid'), 'utf8') !== '');
  interrupt.abort(new Error('stopped'));
  await t.rejects(running, /stopped/);
  await ends(join(cwd, 'pid'));
});

t.test('a command with quotes, newlines and a here-document is given to the shell as it stands', async (t) => {
  const { cwd, run } = stage(t, 'SessionStart', { Command: 'cat <<"E"\n$HOME "\'\nE\necho `echo x`' });
  writeFileSync(join(cwd, 'x'), '');
  t.same((await run()).context, ['$HOME "\'\nx']);
});

t.test('a matcher is about the whole name of a tool', async (t) => {
  for (const matcher of [undefined, '', '*', 'Exec', 'Ex.c', 'EditFile|Exec', '.*', '(?:Exec)']) {
    t.ok(matches(matcher, 'Exec'), String(matcher));
  }
  for (const matcher of ['Exe', 'xec', 'exec', 'Edit|Exe', 'Exec2', '^$']) t.notOk(matches(matcher, 'Exec'), matcher);
  const { run } = stage(
    t,
    'PreToolUse',
    { Command: 'echo a >&2; exit 2', Matcher: 'WriteFile|EditFile' },
    { Command: 'echo b >&2; exit 2', Matcher: 'mcp__shop__.*' },
  );
  t.same((await run({ tool_name: 'EditFile' })).reasons, ['a']);
  t.same((await run({ tool_name: 'mcp__shop__buy' })).reasons, ['b']);
  t.same((await run({ tool_name: 'ReadFile' })).reasons, []);
});

t.test('a catastrophic matcher counts as a match: a guard is never passed by a slow comparison', async (t) => {
  t.ok(matches('(a+)+b', `${'a'.repeat(60)}c`));
  t.notOk(matches('(a+)+b', 'Exec'));
});

t.test('a name never escapes its comparison', async (t) => {
  fc.assert(
    fc.property(fc.string(), (name) => {
      t.equal(matches('[a-z]+', name), /^[a-z]+$/.test(name));
    }),
  );
});

t.test('settings with a broken matcher, no command or an odd limit are refused', async (t) => {
  for (const hook of [
    { Command: 'x', Matcher: '(' },
    { Command: 'x', Matcher: 'a'.repeat(201) },
    { Command: ' ' },
    {},
    { Command: 'x', TimeoutMs: 0 },
    { Command: 'x', TimeoutMs: 1e9 },
    { Command: 5 },
  ]) {
    for (const event of hookEvents) t.throws(() => v.parse(HookSettings, { [event]: [hook] }), JSON.stringify(hook));
  }
});

for (const event of ['PreToolUse', 'PostToolUse'] as const) {
  t.test(`a hook of ${event} whose file in the workspace has changed does not run`, async (t) => {
    const cwd = temporaryWorkspace(t);
    writeFileSync(join(cwd, 'guard.sh'), 'echo ran\n');
    const settings = v.parse(HookSettings, { [event]: [{ Command: 'sh ./guard.sh; date > noted' }] });
    const hooks = new Hooks(settings, userCommands({ environment, passEnvironment: [], secrets: [] }), cwd);
    const facts = { hook_event_name: event, session_id: 'thread', turn_id: 'turn', workspace_path: cwd };
    const run = (place = cwd) => hooks.run({ ...facts, cwd: place }, never);
    for (const _ of [1, 2]) t.match(await run(), { context: ['ran'], reasons: [], failures: [] }, 'control');
    const worktree = temporaryWorkspace(t);
    writeFileSync(join(worktree, 'guard.sh'), 'touch ran-elsewhere\n');
    const outputOf = ({ reasons, failures }: Awaited<ReturnType<typeof run>>) =>
      event === 'PreToolUse' ? reasons : failures;
    t.match(outputOf(await run(worktree)), [/guard\.sh of the workspace has changed.*oratorio trust/]);
    t.notOk(existsSync(join(worktree, 'ran-elsewhere')));
    writeFileSync(join(cwd, 'guard.sh'), 'touch changed-ran\n');
    t.match(outputOf(await run()), [/guard\.sh of the workspace has changed.*oratorio trust/]);
    t.notOk(existsSync(join(cwd, 'changed-ran')));
  });
}
