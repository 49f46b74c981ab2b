/** `oratorio race` in the installed product, with a model whose second attempt is the good one. */
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import t from 'tap';
import { agentPresets } from '../../src/protocol/index.ts';
import {
  answered,
  eventStream,
  hang,
  startMockUpstream,
  type UpstreamRequest,
} from '../fixtures/upstream/mock-upstream.ts';
import { eventually } from '../hub/harness.ts';
import { command, makePlace, oratorio, oratorioJson, type Place, runningHub, startHub } from './harness.ts';

t.test('the attempt that passes the check is applied, and undo takes it back', async (t) => {
  let attempts = 0;
  const model = (request: UpstreamRequest) => {
    const messages: { role: string }[] = request.body.messages;
    if (messages.at(-1)?.role === 'tool') return answered(request, { text: 'done' });
    attempts += 1;
    const content = attempts === 2 ? 'good' : 'bad';
    return answered(request, {
      toolCalls: [{ id: 'call_1', name: 'WriteFile', arguments: { path: 'a.txt', content } }],
    });
  };
  const upstream = await startMockUpstream(t, model);
  const place = makePlace(t);
  const workspace = place.workspace('site', { EndPoint: upstream.url, ApiKey: 'key', Model: 'm', UpstreamRetries: 0 });
  const a = join(workspace, 'a.txt');
  writeFileSync(a, 'before');
  const at = ['--workspace', workspace];
  const check = ['--check', 'grep -q good a.txt', '--attempts', '3', '--yes', '--json'];
  const race = await oratorio(place, ['race', ...at, ...check, 'Make it good.']);
  t.equal(race.code, 0, race.stderr);
  const { threadId, attempts: found, applied } = JSON.parse(race.stdout);
  t.equal(found.length, 3);
  t.equal(found.filter(({ hasPassed }: { hasPassed: boolean }) => hasPassed).length, 1);
  t.same([applied.restored, readFileSync(a, 'utf8')], [['a.txt'], 'good']);
  for (const { directory } of found) t.ok(existsSync(directory), 'the attempts are kept');

  const [{ forks: listed }] = await oratorioJson(place, 'list');
  const forks = await forksIn(place);
  const directories = (of: readonly { readonly directory: string }[]) => of.map(({ directory }) => directory).sort();
  t.same(directories(listed), directories(found), 'attempts are below their workspace');
  t.same(directories(forks), directories(found));
  const appliedBy = (forks: Awaited<ReturnType<typeof forksIn>>) =>
    forks.flatMap(({ race }) => race?.['restoreId'] ?? []);
  t.same(appliedBy(forks), [applied.restoreId], 'the applied attempt is known');
  t.match((await oratorio(place, ['list'])).stdout, /└ attempt 2 \(oratorio\)\t(?:check: (?:passed|failed|stopped))\t/);
  t.match(
    (await oratorio(place, ['up', workspace, '--no-follow'])).stdout,
    /└ race: attempt 2, Make it good\. {2}check: /,
  );

  const undo = await oratorio(place, ['undo', ...at, '--json']);
  t.equal(undo.code, 0, undo.stderr);
  t.equal(readFileSync(a, 'utf8'), 'before');
  const again = await oratorio(place, ['undo', ...at]);
  t.match(
    [again.code, again.stderr],
    [1, /no turn that could be taken back/],
    'what is taken back is not brought back',
  );
  const { restoreId } = JSON.parse(undo.stdout);
  const redo = await oratorio(place, ['undo', ...at, '--thread', threadId, '--restore', restoreId, '--json']);
  t.equal(readFileSync(a, 'utf8'), 'good', redo.stderr);
  const { restoreId: redone } = JSON.parse(redo.stdout);
  t.equal((await oratorio(place, ['undo', ...at, '--thread', threadId, '--restore', redone])).code, 0);
  t.equal(readFileSync(a, 'utf8'), 'before');
  t.same(appliedBy(await forksIn(place)), []);
  t.match((await oratorio(place, ['race', ...at, '--prune'])).stdout, 'Deleted 3 attempts.');
  for (const { directory } of found) t.notOk(existsSync(directory));
});

t.test('--prune keeps attempts with commits and files of the user, and --force deletes them', async (t) => {
  const place = makePlace(t);
  const workspace = place.workspace('site', { Provider: 'demo' });
  const git = (directory: string, ...args: string[]) =>
    execFileSync('git', ['-C', directory, '-c', 'user.name=a', '-c', 'user.email=a@b', ...args], { env: place.env });
  writeFileSync(join(workspace, 'a.txt'), 'before');
  git(workspace, 'init', '-q');
  git(workspace, 'add', 'a.txt');
  git(workspace, 'commit', '-qm', 'one');
  const at = ['--workspace', workspace];
  const race = ['run: echo r > r.txt', '--attempts', '4', '--check', 'echo checked > checked.txt', '--yes'];
  const { attempts } = await oratorioJson(place, 'race', ...race, ...at);
  const [committed, written, removed, untouched]: string[] = attempts.map(
    ({ directory }: { directory: string }) => directory,
  );
  writeFileSync(join(committed ?? '', 'mine.txt'), 'precious');
  git(committed ?? '', 'add', 'mine.txt');
  git(committed ?? '', 'commit', '-qm', 'mine');
  writeFileSync(join(written ?? '', 'unsaved.txt'), 'precious');
  rmSync(join(removed ?? '', 'a.txt'));

  const { pruned, kept } = await oratorioJson(place, 'race', '--prune', ...at);
  t.equal(pruned, 1, 'files of the turn and of the check are not the user’s');
  t.same(kept.map(({ directory }: { directory: string }) => directory).sort(), [committed, written, removed].sort());
  t.match(JSON.stringify(kept), /commit [0-9a-f]+ is on no branch/);
  t.match(JSON.stringify(kept), 'changed after the attempt had ended');
  t.notOk(existsSync(untouched ?? ''));
  git(committed ?? '', 'branch', 'saved');
  const again = await oratorio(place, ['race', '--prune', ...at]);
  t.match(again.stdout, /^Deleted 0 attempts\.\nKept [\s\S]+oratorio race --prune --force/);
  t.match((await oratorio(place, ['race', '--prune', '--force', ...at])).stdout, 'Deleted 3 attempts.');
  for (const directory of [committed, written, removed]) t.notOk(existsSync(directory ?? ''));
});

t.test('the check runs in the sandbox of its attempt; without one it needs the consent of the user', async (t) => {
  const place = makePlace(t);
  const workspace = place.workspace('site', { Provider: 'demo' });
  const proof = join(place.root, 'proof.txt');
  writeFileSync(join(workspace, 'check.sh'), 'exit 1\n');
  const race = (env: Place['env'], ...options: string[]) =>
    oratorio({ ...place, env }, [
      ...['race', `run: printf 'echo %s > ${proof}; test -e check.sh' "$USER" > check.sh`, '--attempts', '1'],
      ...['--check', 'sh check.sh', '--workspace', workspace, '--json', ...options],
    ]);
  const passed = ({ code, stdout }: { code: number | null; stdout: string }) => [
    code,
    JSON.parse(stdout).attempts?.[0].hasPassed,
  ];

  t.same(passed(await race(place.env, '--yes')), [0, true], 'the script of the agent runs');
  t.notOk(existsSync(proof), 'but does not reach files outside of its attempt');

  const bin = mkdtempSync(join(place.root, 'bin-'));
  writeFileSync(join(bin, 'bwrap'), '#!/bin/sh\necho "bwrap: No permissions" >&2\nexit 1\n', { mode: 0o755 });
  const withoutSandbox = { ...place.env, PATH: `${bin}${delimiter}${place.env['PATH']}` };
  if (process.platform === 'linux') {
    const before = await forksIn(place);
    const refused = await race(withoutSandbox);
    t.match(
      [refused.code, JSON.parse(refused.stdout)],
      [1, { error: { code: 'sandboxUnavailable', message: /cannot run in a sandbox: / } }],
    );
    t.same(await forksIn(place), before, 'nothing was begun');
  }

  t.same(passed(await race(place.env, '--yes', '--outside')), [0, true]);
  t.ok(existsSync(proof), 'positive control: outside of the sandbox the script has the rights of the user');
});

/** Forks that the Hub lists. */
async function forksIn(place: Place) {
  const { threads } = await runningHub(place).client.threads({ forks: true });
  return threads.flatMap(({ activity, fork }) => (fork ? [{ activity, ...fork }] : []));
}

t.test(
  'attempts have agents of their own; one that ends or is missing fails alone, and a kill leaves the workspace',
  async (t) => {
    const upstream = await startMockUpstream(t, (request: UpstreamRequest) => {
      const messages: { role: string }[] = request.body.messages;
      if (messages.at(-1)?.role === 'tool') return answered(request, { text: 'done' });
      const write = { path: 'a.txt', content: 'by our own' };
      return answered(request, { toolCalls: [{ id: 'call_1', name: 'WriteFile', arguments: write }] });
    });
    const place = makePlace(t);
    const stub = fileURLToPath(new URL('../../test/external/stub-agent.mjs', import.meta.url));
    // A preset whose program is the stub, too.
    const bin = join(place.root, 'bin');
    mkdirSync(bin);
    writeFileSync(join(bin, 'goose'), `#!/usr/bin/env node\nimport(${JSON.stringify(stub)});\n`, { mode: 0o755 });
    const at = { ...place, env: { ...place.env, PATH: `${bin}${delimiter}${place.env['PATH']}` } };
    const workspace = place.workspace('site', {
      ...{ EndPoint: upstream.url, ApiKey: 'key', Model: 'm', UpstreamRetries: 0 },
      Agent: { Kind: 'oratorio', Name: 'mine', Command: [process.execPath, stub], Env: { WHO: 'good' } },
    });
    const a = join(workspace, 'a.txt');
    writeFileSync(a, 'before');
    const race = (...args: string[]) =>
      oratorio(at, ['race', '--workspace', workspace, '--check', 'grep -q good a.txt', '--yes', '--json', ...args]);
    const { client } = await startHub(at);
    const forks = () => forksIn(at);
    const prompt = 'run test "$WHO" || kill -9 $PPID\nrun printf "$WHO" > a.txt\nsay done';

    for (const name of ['missing', '$(touch owned)', 'mine,', 'mine,mine,mine,mine,mine,mine,mine,mine,mine']) {
      const refused = await race('--agent', name, prompt);
      t.match([refused.code, JSON.parse(refused.stdout)], [2, { error: { code: 'usage' } }], name);
    }
    t.same(await forks(), [], 'nothing was begun');

    const lost = await race('--agent', 'goose', '--agent', absentAgent(at.env['PATH']), '--agent', 'oratorio', prompt);
    t.equal(lost.code, 1, lost.stderr);
    const { attempts: failed, applied: none } = JSON.parse(lost.stdout);
    t.match(failed, [
      { agent: 'goose', status: 'failed', failure: { code: 'agentExited', message: /^The agent goose has ended/ } },
      { status: 'notStarted', directory: null, failure: { code: 'agentUnavailable', message: /not installed/ } },
      { agent: 'oratorio', status: 'completed', hasPassed: false, failure: null, files: 1 },
    ]);
    t.same([none, readFileSync(a, 'utf8')], [null, 'before']);

    const won = await race('--agent', 'oratorio,mine', '--attempts', '3', prompt);
    t.equal(won.code, 0, won.stderr);
    const { threadId, attempts, applied } = JSON.parse(won.stdout);
    t.same(
      attempts.map(({ agent, hasPassed }: { agent: string; hasPassed: boolean }) => [agent, hasPassed]),
      [
        ['oratorio', false],
        ['mine', true],
        ['oratorio', false],
      ],
    );
    t.same([applied.restored, readFileSync(a, 'utf8')], [['a.txt'], 'good'], 'exactly its change is applied');
    const { stdout: table } = await oratorio(at, ['list']);
    t.match(table, /└ attempt 2 \(mine\)\tcheck: passed\t/);
    t.match(table, /└ attempt 1 \(goose\)\tfailed: agentExited\t/);
    const undone = await oratorio(at, [
      'undo',
      '--workspace',
      workspace,
      '--thread',
      threadId,
      '--restore',
      applied.restoreId,
    ]);
    t.same([undone.code, readFileSync(a, 'utf8')], [0, 'before'], undone.stderr);

    const racing = race('--agent', 'mine', 'run printf good > a.txt\nwait');
    const pid = await eventually(async () => {
      const isWorking = (await forks()).some(
        ({ race, activity }) => race?.state === 'working' && activity === 'running',
      );
      return isWorking ? ((await client.byWorkspace(workspace)).pid ?? undefined) : undefined;
    }, 'the attempt works');
    process.kill(pid, 'SIGKILL');
    const killed = await racing;
    t.match(
      [killed.code, JSON.parse(killed.stdout)],
      [1, { attempts: [{ status: 'failed', failure: { code: 'agentInterrupted' } }], applied: null }],
      'an external agent does not survive its server',
    );
    t.equal(readFileSync(a, 'utf8'), 'before', 'nothing was applied');
    t.match((await oratorio(at, ['race', '--workspace', workspace, '--prune'])).stdout, 'Deleted 7 attempts.');
    t.same(await forks(), []);
  },
);

for (const [victims, moment, isHubKilled] of [
  ['agent server is', 'in the first answers', false],
  ['agent server is', 'in the copies', false],
  ['Hub and agent server are', 'in the first answers', true],
] as const) {
  t.test(`a race whose ${victims} killed ${moment} has the same result, and repeats no work`, async (t) => {
    let held = moment === 'in the first answers' ? 2 : 0;
    const upstream = await startMockUpstream(t, (request: UpstreamRequest) => {
      const messages: { role: string }[] = request.body.messages;
      if (messages.at(-1)?.role !== 'tool') {
        const work = 'echo once >> effects; echo good > a.txt';
        return answered(request, { toolCalls: [{ id: 'call_1', name: 'Exec', arguments: { command: work } }] });
      }
      if (held === 0) return answered(request, { text: 'done' });
      held -= 1;
      return [eventStream, hang];
    });
    const place = makePlace(t);
    const workspace = place.workspace('site', {
      EndPoint: upstream.url,
      ApiKey: 'key',
      Model: 'm',
      UpstreamRetries: 0,
    });
    writeFileSync(join(workspace, 'a.txt'), 'before');
    const hub = await startHub(place);
    const check = 'grep -q good a.txt && test "$(cat effects)" = once';
    const at = ['--workspace', workspace, '--attempts', '2', '--check', check, '--yes', '--json'];
    const racing = oratorio(place, ['race', ...at, 'Make it good.']);
    await eventually(async () => {
      const isThere = moment === 'in the copies' ? (await forksIn(place)).length > 0 : upstream.requests.length === 4;
      return isThere || undefined;
    }, moment);
    const { pid } = await hub.client.byWorkspace(workspace);
    if (isHubKilled) await hub.kill('SIGKILL');
    process.kill(pid ?? 0, 'SIGKILL');
    const { code, stdout, stderr } = await racing;
    t.equal(code, 0, stderr);
    const { attempts, applied } = JSON.parse(stdout);
    t.equal(attempts.length, 2);
    t.equal(attempts.filter(({ failure }: { failure: unknown }) => failure).length, 0);
    t.equal(new Set(attempts.map(({ directory }: { directory: string }) => directory)).size, 2);
    t.same(applied.restored.toSorted(), ['a.txt', 'effects']);
    t.equal(readFileSync(join(workspace, 'effects'), 'utf8'), 'once\n');
    t.equal((await forksIn(place)).length, 2, 'no copy is made twice');
    if (moment === 'in the first answers') t.equal(upstream.requests.length, 6, 'each answer is repeated once');
  });
}

t.test('after a kill of the race program the next race names its attempts and the next steps', async (t) => {
  const place = makePlace(t);
  const workspace = place.workspace('site', { Provider: 'demo' });
  const at = ['--workspace', workspace, '--attempts', '1', '--check', 'true', '--yes'];
  await startHub(place);
  const racing = spawn(process.execPath, [command, 'race', ...at, 'run: sleep 1'], { env: place.env, stdio: 'ignore' });
  const ended = once(racing, 'exit');
  await eventually(
    async () => (await forksIn(place)).some(({ race }) => race?.state === 'working') || undefined,
    'the attempt works',
  );
  racing.kill('SIGKILL');
  await ended;
  const { code, stderr } = await oratorio(place, ['race', ...at, 'run: true']);
  t.equal(code, 0);
  t.match(stderr, /1 attempt of an earlier race has no result/);
  t.match(stderr, 'oratorio race --prune');
});

/** A preset whose program is on no machine that runs this test. */
function absentAgent(searchPath = ''): string {
  const isThere = (program: string) => searchPath.split(delimiter).some((each) => existsSync(join(each, program)));
  const [name] = Object.entries(agentPresets).find(([, { program }]) => !isThere(program)) ?? [];
  if (name === undefined) throw new Error('every agent that there is is installed here');
  return name;
}
