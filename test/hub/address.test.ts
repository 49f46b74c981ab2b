/** `hub.lock` of a running Hub: after its removal, damage or wrong permissions it is published again. */
import { once } from 'node:events';
import {
  chmodSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { discoverHub } from '../../src/client/index.ts';
import { lockHolder } from '../../src/supervise/index.ts';
import {
  agentServerFixture,
  eventually,
  hubStatePath,
  makeWorkspace,
  quick,
  spawnHub,
  startTestHub,
  temporaryDirectory,
} from './harness.ts';

const agentServer = agentServerFixture('well-behaved.ts');
const patient = { statusTimeoutMs: 60_000 };

const damages: Record<string, (file: string) => void> = {
  deleted: (file) => rmSync(file),
  truncated: (file) => truncateSync(file),
  'replaced by garbage': (file) => writeFileSync(file, '\u0000{"pid": '),
  'replaced by another address': (file) => {
    const lock = JSON.parse(readFileSync(file, 'utf8'));
    writeFileSync(file, JSON.stringify({ ...lock, pid: process.pid, apiBaseUrl: 'http://127.0.0.1:9' }));
  },
  'replaced by rename': (file) => {
    writeFileSync(`${file}.new`, '{}');
    renameSync(`${file}.new`, file);
  },
  'replaced by a directory': (file) => {
    mkdirSync(join(`${file}.new`, 'inside'), { recursive: true });
    // A directory cannot take the place of a file, and the Hub may be faster: it publishes the file that is missing.
    for (let isThere = false; !isThere; isThere = hasMoved(`${file}.new`, file)) rmSync(file, { force: true });
  },
  'replaced by a symlink': (file) => {
    symlinkSync('/dev/zero', `${file}.new`);
    renameSync(`${file}.new`, file);
  },
  'without a mode': (file) => chmodSync(file, 0o000),
  'open to others': (file) => chmodSync(file, 0o644),
};

function hasMoved(from: string, to: string): boolean {
  try {
    renameSync(from, to);
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOTDIR') return false;
    throw error;
  }
}

function isPrivateFile(file: string): boolean {
  const stats = lstatSync(file, { throwIfNoEntry: false });
  return stats?.isFile() === true && (stats.mode & 0o777) === 0o600;
}

const home = temporaryDirectory(t);
const state = hubStatePath(home);
const file = join(state, 'hub.lock');
mkdirSync(state, { recursive: true, mode: 0o700 });
writeFileSync(join(state, 'push.json'), JSON.stringify({ version: 1, subscriptions: [] }, null, 2).concat('\n'), {
  mode: 0o600,
});
/** Hub of all tests; the last one takes its lock away. */
const hub = await startTestHub(t, { home, agentServer });

t.test('regression: edge 1 a damaged hub.lock is published again by the running Hub', async (t) => {
  const workspace = makeWorkspace(t, quick);
  const { pid } = await hub.ensure(workspace);
  const before = readFileSync(file, 'utf8');
  for (const [name, damage] of Object.entries(damages)) {
    damage(file);
    await eventually(
      () => isPrivateFile(file) && readFileSync(file, 'utf8') === before,
      `${name}: published again with the same token`,
    );
    t.match(await discoverHub({ home: hub.home, ...patient }), { kind: 'found', lock: { pid: hub.child.pid } }, name);
    t.match(await hub.ensure(workspace), { pid, adopted: false }, 'the same agent server');
  }
});

t.test('regression: edge 1 a Hub that yields reports the serving process, also with a damaged hub.lock', async (t) => {
  const { pid } = hub.child;
  if (process.platform === 'linux') t.equal(lockHolder(join(hubStatePath(hub.home), 'hub.mutex')), pid);
  const yields = async () => {
    const loser = spawnHub(hub.home, { agentServer });
    await once(loser.child, 'close');
    t.equal(loser.child.exitCode, 0);
    return JSON.parse(loser.output().trim().split('\n').at(-1) ?? '');
  };
  t.match(await yields(), { kind: 'yielded', pid, to: { apiBaseUrl: hub.lock.apiBaseUrl } });
  // A stopped Hub cannot repair the file: the kernel still knows who holds the lock.
  hub.child.kill('SIGSTOP');
  rmSync(file);
  if (process.platform === 'linux') t.match(await yields(), { kind: 'yielded', pid, to: null });
  writeFileSync(file, JSON.stringify({ ...hub.lock, pid: process.pid }), { mode: 0o600 });
  if (process.platform === 'linux') t.match(await yields(), { kind: 'yielded', pid, to: null });
  hub.child.kill('SIGCONT');
  await eventually(
    async () => (await discoverHub({ home: hub.home, ...patient })).kind === 'found',
    'it is found again',
  );
});

t.test(
  'a Hub whose state directory is removed writes its lock and its list again, and no second Hub starts',
  async (t) => {
    const before = readFileSync(file, 'utf8');
    for (const removed of [state, join(state, 'hub.mutex')]) {
      // The Hub writes its files again at once.
      rmSync(removed, { recursive: true, maxRetries: 20 });
      await eventually(
        () =>
          existsSync(join(state, 'appservers.json')) && isPrivateFile(file) && readFileSync(file, 'utf8') === before,
        `${removed} is there again`,
      );
      await eventually(() => lockHolder(join(state, 'hub.mutex')) === hub.child.pid, 'the claim is taken again');
      const loser = spawnHub(home, { agentServer });
      await once(loser.child, 'close');
      t.match(JSON.parse(loser.output().trim().split('\n').at(-1) ?? ''), { kind: 'yielded', pid: hub.child.pid });
    }
  },
);

t.test(
  'each file of the state directory is there again after its removal, and after that of the directory',
  async (t) => {
    t.equal((await hub.call('GET', '/v1/push')).status, 200);
    t.equal((await hub.call('POST', '/v1/tokens', { name: 'test', scopes: ['list'] })).status, 200);
    const ofWorkspaces = 'appservers.json';
    const files = () =>
      readdirSync(state, { withFileTypes: true }).flatMap((each) =>
        each.isFile() && /\.(?:json|key|lock|mutex)$/.test(each.name) && !each.name.startsWith('.') ? [each.name] : [],
      );
    const names = files().toSorted();
    const wanted = ['adoption.key', ofWorkspaces, 'hub.lock', 'hub.mutex', 'port.json', 'push-key.json', 'push.json'];
    t.same(names, [...wanted, 'tokens.json']);
    const read = (name: string) => (name === ofWorkspaces ? '' : readFileSync(join(state, name), 'utf8'));
    const before = names.map(read);
    const isWhole = () =>
      names.every((name) => existsSync(join(state, name))) &&
      names.every((name, index) => read(name) === before[index]);
    for (const removed of ['.', ...names]) {
      rmSync(join(state, removed), { recursive: true });
      await eventually(isWhole, `${removed} is there again`);
      await eventually(() => lockHolder(join(state, 'hub.mutex')) === hub.child.pid, 'the claim is held');
    }
    for (const name of names) t.ok(isPrivateFile(join(state, name)), `${name} is private`);
  },
);

t.test(
  'regression: edge 1 a Hub whose lock was taken over ends and leaves the file of its successor unchanged',
  async (t) => {
    // A stopped Hub cannot take its claim again: deleting the mutex lets a second Hub in.
    hub.child.kill('SIGSTOP');
    rmSync(join(state, 'hub.mutex'));
    rmSync(join(state, 'hub.lock'));
    const second = await startTestHub(t, { home, agentServer });
    const published = readFileSync(file, 'utf8');
    const ended = once(hub.child, 'close');
    hub.child.kill('SIGCONT');
    await ended;
    t.match(hub.output(), /another Hub has taken over this home/);
    t.equal(readFileSync(file, 'utf8'), published);
    t.match(await discoverHub({ home, ...patient }), { kind: 'found', lock: { pid: second.child.pid } });
    await second.shutdown();
    t.notOk(existsSync(file), 'it is withdrawn at the end');
  },
);
