/** Commands that an external agent has us run: where our own run, by our rules and approvals, no longer than its turn. */
import { existsSync, mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { sandboxStatus } from '../../src/agent/index.ts';
import { OutputEnd } from '../../src/external/output-end.ts';
import { CommandGrants } from '../../src/external/terminal-service.ts';
import { defaults } from '../../src/protocol/index.ts';
import { commandLine } from '../../src/supervise/index.ts';
import { listPids } from '../../src/supervise/procfs.ts';
import type { Message } from '../appserver/harness.ts';
import { items, Talk, textOf } from './talk.ts';

const config = {
  Permissions: {
    BlockedPaths: ['blocked'],
    Rules: [
      { Tool: 'Exec', Pattern: 'touch ruled', Decision: 'deny' },
      { Tool: 'Exec', Pattern: 'echo *', Decision: 'allow' },
    ],
  },
};
const { talk, path } = await Talk.begin(t, '', config);

/** Says the words, and answers the question that they lead to. */
async function decided(decision: string, ...lines: string[]): Promise<{ turn: Message; question: Message }> {
  const turnId = await talk.start(...lines);
  const question = await talk.decide(turnId, decision);
  return { turn: await talk.end(turnId), question };
}

t.test('a command runs after a user has allowed it, and is shown', async (t) => {
  const { turn, question } = await decided('accept', 'terminal touch made && echo done && exit 3');
  t.match(question, { approvalType: 'shell', target: 'touch made && echo done && exit 3' });
  t.match(JSON.parse(textOf(turn)), {
    exit: { exitCode: 3, signal: null },
    shown: { output: 'done\n', truncated: false, exitStatus: { exitCode: 3, signal: null } },
    after: -32_602,
  });
  t.ok(existsSync(join(path, 'made')));
  t.match(items(turn, 'toolCall'), [{ tool: 'Exec', source: 'agent' }]);
  t.match(items(turn, 'commandExecution'), [{ output: 'done\n', outcome: 'failed', exitCode: 3 }]);
  await decided('accept', 'terminal touch ../outside');
  const { available } = await sandboxStatus('auto', process.env, 'allow');
  t.equal(existsSync(join(path, '..', 'outside')), !available, 'it runs in the sandbox where there is one');
  const declined = (await decided('decline', 'terminal touch declined')).turn;
  t.match(textOf(declined), /^-32602 .*must not be run/);
  t.match(items(declined, 'toolResult'), [{ outcome: 'declined' }]);
  t.notOk(existsSync(join(path, 'declined')));
});

t.test('rules hold, and a grant covers the one command that a user has seen', async (t) => {
  const allowed = await talk.say('terminal echo by rule');
  t.match(JSON.parse(textOf(allowed)), { shown: { output: 'by rule\n' } });
  t.same(items(allowed, 'approvalRequest'), []);
  t.match(textOf(await talk.say('terminal touch ruled')), /^-32602 .*must not be run/);
  t.notOk(existsSync(join(path, 'ruled')));
  const { turn } = await decided('accept', 'askterminal echo $(touch asked) once');
  t.match(JSON.parse(textOf(turn)), { shown: { output: 'once\n' } });
  t.equal(items(turn, 'approvalRequest').length, 1, 'one question');
  t.match(items(turn, 'commandExecution'), [{ output: 'once\n' }], 'the output belongs to the call that was allowed');
  const again = await talk.start('askterminal touch twice', 'terminal touch twice');
  const first = await talk.decide(again, 'accept');
  const { params } = await talk.client.until(
    ({ method, params }) =>
      method === 'item/approval/request' && params.turnId === again && params.requestId !== first.requestId,
    'a second question',
  );
  await talk.client.call('approval/respond', { requestId: params.requestId, decision: 'decline' });
  t.match(textOf(await talk.end(again)), /must not be run/, 'a grant holds once');
  t.notOk(existsSync(join(path, 'other')), 'a call that changes while people think runs nothing else');
});

/** Question for a command and the request to run it, in the wording of real agents. */
const wordings: Readonly<Record<string, { asked: object; later?: object; terminal: object }>> = {
  'a tool without a kind, as goose has': {
    asked: { title: 'shell', rawInput: { command: 'echo one > goose && cat goose' } },
    later: { kind: 'execute', status: 'in_progress' },
    terminal: { command: 'echo one > goose && cat goose' },
  },
  'words in the question, and a shell around them': {
    asked: { title: 'Run touch', kind: 'execute', rawInput: { command: ['bash', '-lc', 'touch one'] } },
    terminal: { command: 'bash', args: ['-c', 'touch one'] },
  },
  'a program and its arguments': {
    asked: { title: 'touch', rawInput: { cmd: 'touch', args: ['a b', '$HOME'] } },
    terminal: { command: 'touch', args: ['a b', '$HOME'] },
  },
  'other quotes and blanks': {
    asked: { title: 'Run', kind: 'execute', rawInput: { command: 'touch  "one"  two' } },
    terminal: { command: `touch one 'two'` },
  },
  'the command as the title only': {
    asked: { title: 'touch one', kind: 'execute' },
    terminal: { command: 'touch', args: ['one'] },
  },
  'the directory of the workspace by name': {
    asked: { title: 'Run', kind: 'execute', rawInput: { command: 'touch one' } },
    terminal: { command: 'touch one', cwd: '.' },
  },
};

t.test('a command that an agent asks for and then requests needs only one answer, in any wording', async (t) => {
  const { talk, path } = await Talk.begin(t);
  mkdirSync(join(path, 'below'));
  for (const [wording, words] of Object.entries(wordings)) {
    const turnId = await talk.start(`askthen ${JSON.stringify(words)}`);
    await talk.decide(turnId, 'accept');
    const turn = await talk.end(turnId);
    t.equal(items(turn, 'approvalRequest').length, 1, `one question: ${wording}`);
    t.match(textOf(turn), /"exitCode":0/, wording);
    t.equal(items(turn, 'toolCall').length, 1, `one call: ${wording}`);
  }
  const asked = { title: 'Run', kind: 'execute', rawInput: { command: 'touch one' } };
  for (const [difference, terminal] of Object.entries({
    'another command': { command: 'touch two' },
    'another directory': { command: 'touch one', cwd: 'below' },
    'another variable': { command: 'touch one', env: [{ name: 'PATH', value: '/elsewhere' }] },
  })) {
    const turnId = await talk.start(`askthen ${JSON.stringify({ asked, terminal })}`);
    const { requestId } = await talk.decide(turnId, 'accept');
    const { params } = await talk.client.until(
      ({ method, params }) =>
        method === 'item/approval/request' && params.turnId === turnId && params.requestId !== requestId,
      `a second question: ${difference}`,
    );
    await talk.client.call('approval/respond', { requestId: params.requestId, decision: 'decline' });
    t.match(textOf(await talk.end(turnId)), /must not be run/, `control: ${difference}`);
  }
});

t.test('directory, words, variables and the end of the output are as asked, within bounds', async (t) => {
  mkdirSync(join(path, 'sub'));
  mkdirSync(join(path, 'blocked'));
  const args = JSON.stringify({ command: 'printf', args: ['%s\n', "it's $HOME"], env: [{ name: 'A', value: "x'y" }] });
  const { turn, question } = await decided('accept', `terminalwith ${args}`);
  t.equal(question.target, `export A='x'\\''y'; printf '%s\n' 'it'\\''s $HOME'`);
  t.match(JSON.parse(textOf(turn)), { shown: { output: "it's $HOME\n" } });
  const there = await decided('accept', `terminalwith ${JSON.stringify({ command: 'pwd > here', cwd: 'sub' })}`);
  t.equal(there.question.workingDirectory, join(path, 'sub'));
  t.equal(readFileSync(join(path, 'sub/here'), 'utf8'), `${join(path, 'sub')}\n`);
  const cut = await talk.say(`terminalwith ${JSON.stringify({ command: 'echo aäb', outputByteLimit: 3 })}`);
  t.match(JSON.parse(textOf(cut)), { shown: { output: 'b\n', truncated: true } });
  for (const [more, why] of [
    [{ command: 'pwd', cwd: '@/etc' }, /must be inside/],
    [{ command: 'pwd', cwd: 'blocked' }, /BlockedPaths/],
    [{ command: 'pwd', cwd: 'missing' }, /cannot be used/],
    [{ command: 'pwd', cwd: '@sub' }, /absolute/],
    [{ command: ' ' }, /shape/],
    [{ command: 'pwd', env: [{ name: 'A=B; touch x', value: '' }] }, /shape/],
    [{ command: 'a\0b' }, /shape/],
  ] as const) {
    const refused = await talk.say(`terminalwith ${JSON.stringify(more)}`);
    t.match(textOf(refused), why, JSON.stringify(more));
    t.match(textOf(refused), /^-32602 /);
    t.same(items(refused, 'approvalRequest'), []);
  }
});

/** Processes that sleep for the time of this test, in a sandbox or not. */
const sleepers = (word: string): readonly number[] => listPids().filter((pid) => commandLine(pid) === `sleep ${word}`);

t.test('a command ends when it is killed, with its turn, and with an interrupt', async (t) => {
  const word = `3456.${process.pid}`;
  const { turn } = await decided('accept', `killterminal echo begun; sleep ${word}`);
  t.match(JSON.parse(textOf(turn)), { wasRunning: true, shown: { exitStatus: { exitCode: null } } });
  t.same(sleepers(word), []);
  await decided('accept', `leaveterminal sleep ${word}`);
  t.same(sleepers(word), [], 'nothing of a turn runs after it');
  const waiting = await talk.start(`terminal echo begun; sleep ${word}`);
  await talk.decide(waiting, 'accept');
  await talk.client.until(
    ({ method, params }) => method === 'item/commandExecution/outputDelta' && params.turnId === waiting,
    'its output',
  );
  await talk.client.call('turn/interrupt', { threadId: talk.threadId, turnId: waiting });
  t.match(await talk.end(waiting), { status: 'cancelled' });
  t.same(sleepers(word), []);
  t.equal(textOf(await talk.say('say after')), 'after');
});

t.test('a grant holds once, and for a minute', (t) => {
  let now = 0;
  const grants = new CommandGrants(() => now);
  grants.add('a', 'call_1');
  t.equal(grants.take('b'), undefined);
  t.equal(grants.take('a'), 'call_1');
  t.equal(grants.take('a'), undefined);
  grants.add('a', 'call_2');
  now = defaults.externalAgent.grantMs;
  t.equal(grants.take('a'), undefined);
  t.end();
});

t.test('the end of an output is cut at a character', (t) => {
  const end = new OutputEnd(4);
  for (const piece of ['abc', 'ä', '€']) end.add(piece);
  t.equal(end.text, '€');
  t.equal(end.isCut, true);
  const none = new OutputEnd(0);
  none.add('x');
  t.equal(none.text, '');
  t.equal(new OutputEnd(9).text, '');
  t.end();
});
