/** Commands in a sandbox that outlive their agent server, with the bubblewrap of this machine. */

import { execFileSync } from 'node:child_process';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { Sandboxes } from '../../../src/agent/index.ts';
import { until } from '../../supervise/helpers.ts';
import { soonMs, tookTooLong } from './kept.ts';
import { temporaryWorkspace } from './run-tool.ts';
import { sandboxedPlace } from './sandboxed-server.ts';

const isAvailable = await (async () => {
  const sandboxes = new Sandboxes(process.env);
  return sandboxes.areAvailable().finally(() => sandboxes.close());
})();
const options = { skip: !isAvailable && 'no sandbox can be made here' };
/** A search path with the programs of these tests. */
function binWithoutNsenter(t: Test): string {
  const bin = temporaryWorkspace(t);
  for (const name of ['bash', 'sh', 'bwrap', 'git', 'sleep', 'cat', 'mkdir', 'chmod', 'touch']) {
    const path = execFileSync('sh', ['-c', `command -v ${name}`], { encoding: 'utf8' }).trim();
    symlinkSync(path, join(bin, name));
  }
  return bin;
}

const untilGo = 'until [ -e go ]; do sleep 0.1; done';

t.test('a sandboxed command outlives its killed agent server: result and effect once', options, async (t) => {
  const here = sandboxedPlace(t);
  const first = await here.start();
  const began = first.run(`echo one; echo secret > /tmp/shared; ${untilGo}; cat /tmp/shared; echo x >>effect; exit 3`);
  await began.showed('one');
  await first.kill();
  t.ok((await here.survivors()).length > 0, 'it runs without a server');
  const second = await here.start();
  const adopted = second.adopt();
  writeFileSync(here.at('go'), '');
  t.match(await adopted, { text: 'one\nsecret\n\nExit code 3.', isError: true, exitCode: 3 });
  t.equal(readFileSync(here.at('effect'), 'utf8'), 'x\n');
  await second.close();
  t.notOk(existsSync(here.at('.oratorio')), 'no placeholder is left');
  await here.isClean();
});

t.test('the walls hold after the death of the server, and after the adoption', options, async (t) => {
  const here = sandboxedPlace(t);
  here.git('init', '--quiet');
  writeFileSync(join(here.home, 'config.json'), 'secret');
  const tries = `cat ${here.home}/config.json; echo x >.git/hooks/post-commit; echo x >>.git/config; echo x >.git/commondir; mkdir .oratorio/x; touch ${here.home}/x /etc/oratorio-test`;
  const wait = (name: string) => `until [ -e ${name} ]; do sleep 0.1; done; ${tries}; touch ${name}-done`;
  const first = await here.start();
  const began = first.run(`echo on; ${wait('dead')}; ${wait('adopted')}`);
  await began.showed('on');
  await first.kill();
  const config = readFileSync(here.at('.git/config'), 'utf8');
  writeFileSync(here.at('dead'), '');
  await until('the tries without a server', () => existsSync(here.at('dead-done')));
  const second = await here.start();
  const adopted = second.adopt();
  writeFileSync(here.at('adopted'), '');
  const { text } = await adopted;
  t.notMatch(text, 'secret');
  t.equal(readFileSync(here.at('.git/config'), 'utf8'), config);
  for (const path of ['.git/hooks/post-commit', '.git/commondir', '.oratorio/x'])
    t.notOk(existsSync(here.at(path)), path);
  t.notOk(existsSync('/etc/oratorio-test') || existsSync(join(here.home, 'x')));
  await second.close();
  await here.isClean();
  t.strictSame(readdirSync(here.workspacePath).sort(), ['.git', 'adopted', 'adopted-done', 'dead', 'dead-done']);
});

const plant =
  'mkdir -p sub/x; git init --quiet sub/x; echo "touch ../../pwned" >sub/x/.git/hooks/post-commit; chmod +x sub/x/.git/hooks/post-commit';

t.test(
  'a hook that a command plants while no server runs is set aside when the next one starts',
  options,
  async (t) => {
    const here = sandboxedPlace(t);
    const first = await here.start();
    const began = first.run(`echo on; ${untilGo}; ${plant}; touch planted; until [ -e end ]; do sleep 0.1; done`);
    await began.showed('on');
    await first.kill();
    writeFileSync(here.at('go'), '');
    await until('the hook', () => existsSync(here.at('planted')));
    const second = await here.start();
    t.notOk(existsSync(here.at('sub/x/.git/hooks/post-commit')), 'before the adoption');
    const adopted = second.adopt();
    writeFileSync(here.at('end'), '');
    t.match((await adopted).text, /Set aside, because git would run or read it outside of the sandbox: .*post-commit/);
    await second.close();
    await here.isClean();
  },
);

for (const [name, end] of [
  ['by its end', 'exit 0'],
  ['by the end of its room', 'kill -KILL 2; sleep 1000'],
] as const) {
  t.test(`regression: H53 a hook of a command that ended ${name} is set aside before git runs`, options, async (t) => {
    const here = sandboxedPlace(t);
    here.git('init', '--quiet');
    const first = await here.start();
    const began = first.run(`echo on; ${untilGo}; ${plant}; ${end}`);
    await began.showed('on');
    await first.kill();
    writeFileSync(here.at('go'), '');
    const hasEnd = () => readdirSync(here.records).some((file) => file.endsWith('.end'));
    await until('the end of the command', async () => (await here.survivors()).length === 0 && hasEnd());
    t.ok(existsSync(here.at('sub/x/.git/hooks/post-commit')), 'it is planted');
    // Changes of the user since then.
    writeFileSync(here.at('.git/hooks/pre-push'), '#!/bin/sh', { mode: 0o755 });
    here.git('config', 'core.fsmonitor', 'true');
    execFileSync('git', ['init', '--quiet', here.at('mine')]);
    writeFileSync(here.at('mine/.git/hooks/post-commit'), '#!/bin/sh', { mode: 0o755 });
    const second = await here.start();
    t.notOk(existsSync(here.at('sub/x/.git/hooks/post-commit')), 'it is set aside');
    for (const path of ['.git/hooks/pre-push', 'mine/.git/hooks/post-commit']) t.ok(existsSync(here.at(path)), path);
    t.match(readFileSync(here.at('.git/config'), 'utf8'), 'fsmonitor');
    t.match((await second.adopt()).text, /Set aside.*post-commit/);
    // The next sandbox accepts the files of the user.
    t.match(await second.call('ls mine/.git/hooks/post-commit', { callId: 'next' }), { isError: false });
    await second.close();
    t.ok(existsSync(here.at('mine/.git/hooks/post-commit')));
    await here.isClean();
  });
}

t.test(
  'regression: H53 a start waits for the judgement of git directories, but for no search for set-id files',
  options,
  async (t) => {
    const here = sandboxedPlace(t);
    here.git('init', '--quiet');
    const first = await here.start();
    const began = first.run(`echo on; ${untilGo}; ${plant}; cp /bin/true marked; chmod 4755 marked`);
    await began.showed('on');
    await first.kill();
    writeFileSync(here.at('go'), '');
    await until('the end of the command', async () => (await here.survivors()).length === 0);
    // Above this number of entries, a program searches: this one waits.
    mkdirSync(here.at('many'));
    for (let at = 0; at <= 20_000; at += 1) writeFileSync(here.at(`many/${at}`), '');
    const bin = temporaryWorkspace(t);
    const find = execFileSync('sh', ['-c', 'command -v find'], { encoding: 'utf8' }).trim();
    const search = `#!/bin/sh\nuntil [ -e ${here.home}/search ]; do sleep 0.1; done\nexec ${find} "$@"\n`;
    writeFileSync(join(bin, 'find'), search, { mode: 0o755 });
    const ofServer = { PATH: `${bin}:${process.env['PATH']}` };
    const second = await here.start({}, ofServer);
    t.notOk(existsSync(here.at('sub/x/.git/hooks/post-commit')), 'git directories are judged');
    t.ok(statSync(here.at('marked')).mode & 0o4000, 'control: the search has not ended');
    await second.kill();
    // The next server searches again, and its first command waits.
    const third = await here.start({}, ofServer);
    writeFileSync(here.at('.git/hooks/pre-push'), '#!/bin/sh', { mode: 0o755 });
    const next = third.call('stat -c %a marked', { callId: 'next' });
    await third.ask({ kind: 'processes' });
    writeFileSync(join(here.home, 'search'), '');
    t.match(await next, { text: /^755/, isError: false });
    t.ok(existsSync(here.at('.git/hooks/pre-push')), 'a hook of the user');
    t.match(await third.adopt(), { text: /^on/, isError: false });
    await third.close();
    await here.isClean();
  },
);

t.test('regression: H53 the end of a room is that of its last process, not that of bubblewrap', options, async (t) => {
  const here = sandboxedPlace(t);
  const first = await here.start();
  const names = ['a', 'b', 'c', 'd'].map((name) => `spin-${name}`);
  const spin = names.map((name) => `while :; do echo >${name}; done &`).join(' ');
  const all = names.map((name) => `-e ${name}`).join(' -a ');
  const began = first.run(`echo on; ${untilGo}; ${spin} until [ ${all} ]; do sleep 0.1; done; kill -KILL 2; wait`);
  await began.showed('on');
  await first.kill();
  writeFileSync(here.at('go'), '');
  await until('the end of the room', async () => (await here.survivors()).length === 0);
  const [end = ''] = readdirSync(here.records).filter((name) => name.endsWith('.end'));
  const { mtimeMs } = statSync(join(here.records, end));
  for (const name of names) t.ok(statSync(here.at(name)).ctimeMs <= mtimeMs, `${name} was written before`);
  const second = await here.start();
  await second.adopt();
  await second.close();
  await here.isClean();
});

t.test(
  'regression: H53 a hook of an adopted command is set aside also when another command has ended in its room before',
  options,
  async (t) => {
    const here = sandboxedPlace(t);
    const first = await here.start();
    const began = first.run(`echo on; ${untilGo}; ${plant}`);
    await began.showed('on');
    await first.kill();
    const second = await here.start();
    t.match(await second.call('true', { callId: 'beside' }), { isError: false });
    const adopted = second.adopt();
    writeFileSync(here.at('go'), '');
    t.match((await adopted).text, /Set aside.*post-commit/);
    t.notOk(existsSync(here.at('sub/x/.git/hooks/post-commit')));
    await second.close();
    await here.isClean();
  },
);

t.test('two deaths in a row and a hand-over leave the command to the next server', options, async (t) => {
  const here = sandboxedPlace(t);
  const first = await here.start();
  const began = first.run(`echo one; ${untilGo}; echo two; echo x >>effect`);
  await began.showed('one');
  await first.handOver();
  t.ok((await here.survivors()).length > 0, 'it runs on');
  const second = await here.start();
  const again = second.run('', { wasStarted: true }, { command: 'echo again' });
  await again.showed('one');
  await second.kill();
  const third = await here.start();
  const adopted = third.adopt();
  writeFileSync(here.at('go'), '');
  t.match(await adopted, { text: 'one\ntwo', isError: false });
  t.equal(readFileSync(here.at('effect'), 'utf8'), 'x\n');
  await third.close();
  await here.isClean();
});

t.test(
  'a command in a room enters the adopted room of its conversation; another key makes a new one',
  options,
  async (t) => {
    const here = sandboxedPlace(t);
    const first = await here.start();
    const began = first.run(`echo shared >/tmp/x; echo on; ${untilGo}; cat /tmp/y`);
    await began.showed('on');
    await first.kill();
    const second = await here.start();
    t.match(await second.call('cat /tmp/x; echo back >/tmp/y', { callId: 'same' }), { text: 'shared', isError: false });
    await second.kill();
    const third = await here.start({ PATH: `${process.env['PATH']}:/opt` });
    t.match(await third.call('cat /tmp/x', { callId: 'other' }), { isError: true }, 'another PATH');
    const adopted = third.adopt();
    writeFileSync(here.at('go'), '');
    t.match(await adopted, { text: 'on\nback' });
    t.match(await third.call('cat /tmp/x', { callId: 'other' }), { isError: true });
    await third.close();
    await here.isClean();
  },
);

t.test('a background process in a sandbox outlives its server, and ends with its conversation', options, async (t) => {
  const here = sandboxedPlace(t);
  const first = await here.start();
  const { text } = await first.call('echo up; sleep 1000', {}, { background: true });
  const [id = ''] = /proc_[0-9a-f]{8}/.exec(text) ?? [];
  await first.kill();
  const second = await here.start();
  t.match(await second.ask({ kind: 'processes' }), [{ id, state: 'running' }]);
  t.match(await second.call('true', { callId: 'beside' }), { isError: false });
  await second.handOver();
  const third = await here.start();
  t.match(await third.ask({ kind: 'processes' }), [{ id, state: 'running' }]);
  await third.ask({ kind: 'endThread' });
  t.strictSame(await here.survivors(), []);
  await third.close();
  await here.isClean();
});

t.test('of two adopted commands one is interrupted, the other ends with its result', options, async (t) => {
  const here = sandboxedPlace(t);
  const first = await here.start();
  const [one, two] = [first.run(`echo on; ${untilGo}; echo off`), first.run('echo on; sleep 1000', { callId: 'b' })];
  await Promise.all([one.showed('on'), two.showed('on')]);
  await first.kill();
  const second = await here.start();
  const adopted = second.adopt();
  const other = second.run('', { callId: 'b', wasStarted: true }, { command: 'true' });
  await other.showed('on');
  await second.ask({ kind: 'abort', of: other.id });
  t.match(await other.answer, { error: 'Error: interrupted' });
  writeFileSync(here.at('go'), '');
  t.match(await adopted, { text: 'on\noff', isError: false });
  await second.close();
  await here.isClean();
});

t.test('a sandboxed command ends at its deadline without a server, with everything in its room', options, async (t) => {
  const here = sandboxedPlace(t);
  const first = await here.start();
  const began = first.run('env -i setsid sleep 1000 & echo on; sleep 1000', {}, { timeoutMs: soonMs });
  await began.showed('on');
  await first.kill();
  await until('its end', async () => (await here.survivors()).length === 0);
  const second = await here.start();
  t.match((await second.adopt()).text, tookTooLong);
  await second.close();
  await here.isClean();
});

for (const [name, path] of [
  ['in a room', undefined],
  ['with a sandbox of its own', 'without nsenter'],
] as const) {
  t.test(`regression: H53 a command ${name} that stops its keeper ends at its deadline`, options, async (t) => {
    const here = sandboxedPlace(t);
    const first = await here.start(path && { PATH: binWithoutNsenter(t) });
    // A search path without nsenter lacks setsid, too.
    const stops = 'setsid sleep 1000 2>/dev/null & kill -STOP 0; sleep 1000';
    const began = first.run(`echo on; ${untilGo}; ${stops}`, {}, { timeoutMs: soonMs });
    await began.showed('on');
    await first.kill();
    writeFileSync(here.at('go'), '');
    await until('its end', async () => (await here.survivors()).length === 0);
    const second = await here.start();
    t.match((await second.adopt()).text, tookTooLong);
    await second.close();
    await here.isClean();
  });
}

t.test(
  'a command in a worktree outlives its server; hooks planted in its repository are set aside',
  options,
  async (t) => {
    const here = sandboxedPlace(t);
    here.git('init', '--quiet');
    here.git('commit', '--quiet', '--allow-empty', '-m', 'first');
    const tree = join(temporaryWorkspace(t), 'tree');
    here.git('worktree', 'add', '--quiet', tree);
    const first = await here.start();
    const began = first.run(`echo on; until [ -e go ]; do sleep 0.1; done; ${plant}; touch done`, { place: tree });
    await began.showed('on');
    await first.kill();
    writeFileSync(join(tree, 'go'), '');
    await until('its end', async () => existsSync(join(tree, 'done')) && (await here.survivors()).length === 0);
    const second = await here.start();
    t.notOk(existsSync(join(tree, 'sub/x/.git/hooks/post-commit')));
    t.match(await second.adopt({ place: tree }), { isError: false, text: /Set aside.*post-commit/ });
    await second.close();
    await here.isClean();
  },
);

t.test('without nsenter at the next start the adopted command ends with its result', options, async (t) => {
  const here = sandboxedPlace(t);
  const first = await here.start();
  const began = first.run(`echo on; ${untilGo}; echo off`);
  await began.showed('on');
  await first.kill();
  const second = await here.start({ PATH: binWithoutNsenter(t) });
  const adopted = second.adopt();
  writeFileSync(here.at('go'), '');
  t.match(await adopted, { text: 'on\noff', isError: false });
  await second.close();
  await here.isClean();
});

t.test('a command with a sandbox of its own outlives its server', options, async (t) => {
  const here = sandboxedPlace(t);
  // No room can be made without nsenter.
  const bin = binWithoutNsenter(t);
  const first = await here.start({ PATH: bin });
  const began = first.run(`echo on; ${untilGo}; ${plant}; exit 4`);
  await began.showed('on');
  await first.kill();
  const second = await here.start({ PATH: bin });
  const adopted = second.adopt();
  writeFileSync(here.at('go'), '');
  t.match(await adopted, { exitCode: 4, text: /^on\n.*Set aside.*post-commit/s });
  await second.close();
  await here.isClean();
});

t.test(
  'regression: H53 records that are links, pipes, directories, too large or foreign stop no start and move nothing',
  options,
  async (t) => {
    const here = sandboxedPlace(t);
    mkdirSync(here.records, { recursive: true });
    const outside = temporaryWorkspace(t);
    execFileSync('git', ['init', '--quiet', outside]);
    writeFileSync(join(outside, '.git/hooks/post-commit'), 'mine');
    chmodSync(join(outside, '.git/hooks/post-commit'), 0o755);
    const at = (name: string) => join(here.records, name);
    const name = '0'.repeat(32);
    for (const suffix of ['walls', 'json']) {
      mkdirSync(at(`a.${suffix}`));
      writeFileSync(at(`a.${suffix}/file`), 'x');
      symlinkSync(join(outside, '.git/config'), at(`b.${suffix}`));
      execFileSync('mkfifo', [at(`c.${suffix}`)]);
      writeFileSync(at(`d.${suffix}`), 'x'.repeat(20_000_000));
      writeFileSync(at(`e.${suffix}`), '{"version":1}');
    }
    writeFileSync(at(`${name}.walls`), '{}');
    const first = await here.start();
    t.match(await first.call('echo works'), { text: 'works' });
    await first.run(`echo on; ${untilGo}`, { callId: 'second' }).showed('on');
    await first.kill();
    const [file = ''] = readdirSync(here.records).filter((each) => each.endsWith('.walls'));
    const record = JSON.parse(readFileSync(at(file), 'utf8'));
    const state = { directory: '', texts: [], links: [], hooks: [] };
    const directories = [{ path: join(outside, '.git'), fingerprint: '', state }];
    record.guard.entries.push({ path: join(outside, '.git'), identity: 'x', directories });
    record.guard.entries.push({ path: `${here.workspacePath}/../${outside}/.git`, identity: 'x', directories });
    record.guard.protected.push({ path: join(outside, '.git'), tops: [outside], isLinked: false });
    record.guard.fixed.shared.push([join(outside, '.git/hooks/post-commit'), 'aGFja2Vk', 1]);
    record.guard.fixed.links.push([join(outside, '.git/config'), '/etc/passwd']);
    record.placeholders.push({ path: join(outside, 'empty'), isDirectory: false, identity: '' });
    writeFileSync(join(outside, 'empty'), '');
    writeFileSync(at(file), JSON.stringify(record));
    const second = await here.start();
    writeFileSync(here.at('go'), '');
    t.match(await second.adopt({ callId: 'second' }), { text: 'on', isError: false });
    await second.close();
    t.equal(readFileSync(join(outside, '.git/hooks/post-commit'), 'utf8'), 'mine');
    t.ok(existsSync(join(outside, 'empty')) && existsSync(join(outside, '.git/config')));
    await here.isClean();
  },
);
