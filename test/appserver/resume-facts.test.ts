/** The next agent server finds other facts than its predecessor left: foreign rows, a later day, another boot, files of the user. */
import { execFileSync } from 'node:child_process';
import { existsSync, globSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import t, { type Test } from 'tap';
import { killIfThere, processesOf } from '../hub/harness.ts';
import { eventually, lockFile, type Message } from './harness.ts';
import { KilledWorkspace, type Prepared, spawnAgentServer, spawnHubAndServer } from './killed-turns.ts';
import type { ScriptName } from './turn-scripts.ts';

const place = new KilledWorkspace(t);
await place.connect();
const inRequest = { kind: 'state', state: 'working.requesting.inferring', at: 'commit' } as const;
const lastTurnOf = async (own: KilledWorkspace, turn: Prepared): Promise<Message> => (await own.ended(turn)).at(-1);
const lastTurn = (turn: Prepared): Promise<Message> => lastTurnOf(place, turn);

/** Runs one turn to the death of its server. */
async function killed(script: ScriptName, ...alsoKilled: readonly ScriptName[]): Promise<Prepared[]> {
  const turns: Prepared[] = [];
  for (const each of [script, ...alsoKilled]) turns.push(await place.prepare(each));
  for (const turn of turns.slice(1)) {
    place.begin(turn);
    await place.client.until(
      ({ method, params }) => method === 'item/approval/request' && params.threadId === turn.threadId,
      'a question',
    );
  }
  place.arm(script === 'ask' ? { kind: 'state', state: 'working.awaitingApproval', at: 'commit' } : inRequest);
  for (const turn of turns.slice(0, 1)) place.begin(turn);
  await place.hasEnded;
  return turns;
}

const where = `WHERE turn IN (SELECT key FROM turns WHERE thread = (SELECT key FROM threads WHERE id = ?))`;
const setFacts = ({ threadId }: Prepared, json: string) =>
  place.sql(`UPDATE turnActors SET json = ? ${where}`, json, threadId);
const moveBack = ({ threadId }: Prepared, hours: number) =>
  place.sql(
    `UPDATE turnActors SET json = json_set(json, '$.savedAt', ?) ${where}`,
    new Date(Date.now() - hours * 3_600_000).toISOString(),
    threadId,
  );

t.test('a row of a newer version fails its turn with both versions, and other turns continue', async (t) => {
  const [newer, other] = await killed('work', 'ask');
  if (!newer || !other) throw new Error('two turns were started');
  setFacts(newer, JSON.stringify({ version: 7, program: '9.8.7', anything: true }));
  await place.restart();
  await place.connect();
  const turn = await lastTurn(newer);
  t.match(turn, {
    status: 'failed',
    error: { code: 'resumeFailed', message: /version 7 \(Oratorio 9\.8\.7\).*version 1 \(Oratorio / },
  });
  await place.accept(other);
  t.match(await lastTurn(other), { status: 'completed', resumes: 1 });
  place.begin(newer);
  await place.client.until(
    ({ method, params }) => method === 'turn/completed' && params.threadId === newer.threadId,
    'its thread works',
  );
});

t.test(
  'an upgrade continues a turn of the previous version, and a downgrade refuses a turn of a newer version',
  async (t) => {
    const source = (file: string) => fileURLToPath(new URL(file, import.meta.url));
    const upgraded = ['--import', source('next-facts-version.mjs'), source('turn-victim.ts')];
    let victim: string[] | undefined;
    const own = new KilledWorkspace(t, (t, place) => spawnAgentServer(t, place, victim));
    const work = async (): Promise<Prepared> => {
      await own.connect();
      const turn = await own.prepare('work');
      own.arm(inRequest);
      own.begin(turn);
      await own.hasEnded;
      return turn;
    };
    const older = await work();
    victim = upgraded;
    await own.restart();
    await own.connect();
    t.match((await own.ended(older)).at(-1), { status: 'completed', resumes: 1 });
    t.equal(own.effectsOf(older).length, 3);
    const newer = await work();
    victim = undefined;
    await own.restart();
    await own.connect();
    t.match((await own.ended(newer)).at(-1), {
      status: 'failed',
      error: { code: 'resumeFailed', message: /has version 2 \(Oratorio .*\), and this program reads version 1 \(/ },
    });
  },
);

t.test('an unreadable row fails its turn, and the server starts', async (t) => {
  for (const json of ['', '{', 'null', '[]', '{"version":1}', '\u0000']) {
    const [turn] = await killed('work');
    if (!turn) throw new Error('a turn was started');
    setFacts(turn, json);
    await place.restart();
    await place.connect();
    t.match(await lastTurn(turn), { status: 'failed', error: { code: 'resumeFailed' } }, JSON.stringify(json));
  }
});

t.test('an invalid time fails its turn; an unknown state and a thread that is its own parent do not', async (t) => {
  const cases = [
    [`UPDATE turnActors SET json = json_set(json, '$.savedAt', 'soon') ${where}`, 'failed'],
    [`UPDATE turnActors SET json = json_set(json, '$.state', 'anything') ${where}`, 'completed'],
    ["UPDATE threads SET json = json_set(json, '$.parentThreadId', id) WHERE id = ?", 'completed'],
  ] as const;
  for (const [change, status] of cases) {
    const [turn] = await killed('ask');
    if (!turn) throw new Error('a turn was started');
    place.sql(change, turn.threadId);
    await place.restart();
    await place.connect();
    if (status === 'completed') await place.accept(turn);
    t.match(await lastTurn(turn), { status }, change);
  }
});

t.test('a question that passed while the machine slept for a day waits another 30 s, under its id', async (t) => {
  const [asked] = await killed('ask');
  if (!asked) throw new Error('a turn was started');
  moveBack(asked, 23);
  const past = new Date(Date.now() - 22 * 3_600_000).toISOString();
  place.sql(`UPDATE items SET json = json_set(json, '$.createdAt', ?) WHERE json LIKE '%approvalRequest%'`, past);
  await place.restart();
  await place.connect();
  const { data } = await place.client.call('approval/list', {});
  const left = Date.parse(data[0].expiresAt) - Date.now();
  t.ok(left > 5_000 && left <= 31_000, `${left} ms are left`);
  await place.accept(asked);
  t.match(await lastTurn(asked), { status: 'completed', resumes: 1 });
  t.equal(place.effectsOf(asked).length, 1);
});

t.test('a question keeps its id over kill -9 of the Hub and the agent server, and is answered once', async (t) => {
  const own = new KilledWorkspace(t, spawnHubAndServer);
  await own.connect();
  const turn = await own.prepare('inquire');
  own.begin(turn);
  const { params: asked } = await own.client.until(({ method }) => method === 'question/asked', 'a question');
  const hub: number = JSON.parse(readFileSync(join(own.home, 'hub', 'hub.lock'), 'utf8')).pid;
  const { pid } = JSON.parse(readFileSync(lockFile(own.path), 'utf8'));
  for (const each of [hub, pid]) killIfThere(each);
  await own.hasEnded;

  await own.restart();
  const client = await own.connect();
  const { requestId, createdAt } = asked;
  t.match((await client.call('question/list', {})).data, [{ requestId, createdAt, question: asked.question }]);
  const answer = { requestId, action: 'accept', content: { Colour: 'blue' } };
  await client.call('question/answer', answer);
  await t.rejects(client.call('question/answer', answer));
  const ended = await lastTurnOf(own, turn);
  t.match(ended, { status: 'completed', resumes: 1 });
  const results = ended.items.filter(({ type }: Message) => type === 'toolResult');
  t.match(results, [{ text: /blue/ }]);
  t.equal(ended.items.filter(({ type }: Message) => type === 'question').length, 1);
});

t.test('open turns of a machine that slept for a day end as without the sleep, in the same processes', async (t) => {
  const preloaded = fileURLToPath(new URL('day-later.mjs', import.meta.url));
  const own = new KilledWorkspace(t, (t, place) => spawnHubAndServer(t, place, preloaded));
  await own.connect();
  const asked = await own.prepare('ask');
  own.begin(asked);
  await own.client.until(({ method }) => method === 'item/approval/request', 'a question');
  const working = await own.prepare('long');
  own.begin(working);
  await own.client.until(({ method }) => method === 'item/commandExecution/outputDelta', 'the command runs');

  const { pid } = JSON.parse(readFileSync(lockFile(own.path), 'utf8'));
  const hub: number = JSON.parse(readFileSync(join(own.home, 'hub', 'hub.lock'), 'utf8')).pid;
  for (const each of [pid, hub]) process.kill(each, 'SIGUSR2');
  const later = await own.prepare('once');
  own.begin(later);
  const [turn] = await own.ended(later);
  t.match(turn, { status: 'completed' });
  t.ok(Date.parse(turn.startedAt) > Date.now() + 86_000_000, 'control: the clock has moved');

  writeFileSync(join(own.path, 'go'), '');
  await own.accept(asked);
  for (const each of [working, asked]) {
    const [ended] = await own.ended(each);
    t.match(ended, { status: 'completed' });
    t.notOk(ended.resumes);
    t.equal(own.effectsOf(each).length, 1);
  }
  t.equal(JSON.parse(readFileSync(lockFile(own.path), 'utf8')).pid, pid);
});

/** Process id and command line of each process of a home; a keeper has its own environment. */
function processesOfUser(home: string): string[] {
  const marked = new Set(processesOf(home));
  const lines = execFileSync('ps', ['-ww', '-eo', 'pid=,args='], { encoding: 'utf8' }).split('\n');
  return lines.filter((line) => marked.has(Number.parseInt(line, 10)) || line.includes(home));
}

t.test('a turn continues after a reboot, which ends Hub, agent server, keeper and command at once', async (t) => {
  const own = new KilledWorkspace(t, spawnHubAndServer);
  const { home } = own;
  // A command in a sandbox has no keeper.
  writeFileSync(join(home, 'config.json'), JSON.stringify({ Tools: { Shell: { Sandbox: 'off' } } }));
  await own.connect();
  const turn = await own.prepare('hang');
  own.begin(turn);
  await own.client.until(({ method }) => method === 'item/commandExecution/outputDelta', 'the command runs');
  const processes = processesOfUser(home);
  for (const part of ['hub/hub', 'turn-victim', 'oratorio-keeper', 'sleep 3031'])
    t.ok(processes.join('\n').includes(part), `control: ${part} runs`);
  for (const line of processes) killIfThere(Number.parseInt(line, 10));
  await own.hasEnded;
  await eventually(() => processesOfUser(home).length === 0 || undefined, 'everything has ended');

  const { bootId } = JSON.parse(readFileSync(lockFile(own.path), 'utf8')).identity;
  const earlier = '00000000-0000-4000-8000-000000000000';
  for (const table of ['turnActors', 'turnCalls'])
    own.sql(`UPDATE ${table} SET json = replace(json, ?, ?)`, bootId, earlier);
  let records = 0;
  for (const file of globSync('**/*.{json,lock,kept}', { cwd: home })) {
    const text = readFileSync(join(home, file), 'utf8');
    if (text.includes(bootId)) records += 1;
    writeFileSync(join(home, file), text.replaceAll(bootId, earlier));
  }
  t.ok(records >= 2, 'control: the records of the Hub and of the agent server name the boot');

  await own.restart();
  await own.connect();
  const ended: Message = (await own.ended(turn)).at(-1);
  t.match(ended, { status: 'completed', resumes: 1 });
  t.match(
    ended.items.filter(({ type }: Message) => type === 'toolResult'),
    [{ outcome: 'unknown' }],
  );
  t.match(
    ended.items.filter(({ kind }: Message) => kind === 'turnResumed'),
    [{ text: /^The machine was restarted, and the agent server ended at / }],
  );
});

/** Kills the server of a turn, and changes a settings file before the next start. @returns the ended turn */
async function withSettings(t: Test, fileOf: (workspace: string) => string, changes: object) {
  const own = new KilledWorkspace(t);
  await own.connect();
  const turn = await own.prepare('once');
  own.arm(inRequest);
  own.begin(turn);
  await own.hasEnded;
  const file = fileOf(own.path);
  const settings = existsSync(file) ? JSON.parse(readFileSync(file, 'utf8')) : {};
  writeFileSync(file, JSON.stringify({ ...settings, ...changes }));
  await own.restart();
  await own.connect();
  const ended = (await own.ended(turn)).at(-1) ?? {};
  t.same(own.effectsOf(turn), []);
  return ended;
}

t.test('a call of a resumed turn is refused when the settings now refuse calls that need approval', async (t) => {
  const Permissions = { DefaultApprovalPolicy: 'interrupt' };
  const turn = await withSettings(t, (workspace) => join(workspace, '..', 'config.json'), { Permissions });
  t.match(turn, { status: 'completed', resumes: 1 });
  t.match(
    turn.items.filter(({ type }: Message) => type === 'toolResult'),
    [{ outcome: 'declined' }],
  );
});

t.test('a turn fails with the remedy when new settings of its workspace are not trusted', async (t) => {
  const PreToolUse = [{ Command: 'echo x >> effects' }];
  const turn = await withSettings(t, (workspace) => join(workspace, '.oratorio', 'config.json'), {
    Hooks: { PreToolUse },
  });
  t.match(turn, { status: 'failed', error: { code: 'resumeFailed', message: /withdrawn.*oratorio trust / } });
});

t.test(
  'undo of a resumed turn restores its files, and keeps files that the user wrote while no server lived',
  async (t) => {
    const own = new KilledWorkspace(t);
    await own.connect();
    const at = (name: string) => join(own.path, name);
    const turn = await own.prepare('work');
    // The fourth request: commands have run, a file is written and not yet edited.
    own.arm({ ...inRequest, times: 4 });
    own.begin(turn);
    await own.hasEnded;
    t.same(
      [readFileSync(at('t1.txt'), 'utf8'), own.effectsOf(turn).length],
      ['one\n', 3],
      'control: the turn has worked',
    );
    writeFileSync(at('mine.txt'), 'mine\n');
    writeFileSync(at('notes.txt'), 'notes\nmine\n');
    await own.restart();
    await own.connect();
    t.match((await own.ended(turn)).at(-1), { status: 'completed', resumes: 1 });
    t.equal(readFileSync(at('t1.txt'), 'utf8'), 'one two\n');
    const undone = await own.client.call('thread/rollback', {
      threadId: turn.threadId,
      numTurns: 1,
      restoreFiles: true,
    });
    t.same([...undone.restored].sort(), ['effects', 't1.txt']);
    t.same(undone.conflicts, []);
    t.same([existsSync(at('t1.txt')), existsSync(at('effects'))], [false, false], 'everything of the turn is undone');
    t.same([readFileSync(at('mine.txt'), 'utf8'), readFileSync(at('notes.txt'), 'utf8')], ['mine\n', 'notes\nmine\n']);
  },
);
