/** Files of the home that every start reads or opens, in the place of which something else lies. */
import { execFileSync } from 'node:child_process';
import { mkdirSync, readFileSync, realpathSync, rmSync, symlinkSync, truncateSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import t from 'tap';
import { holdWorkspace } from '../../src/appserver/workspace.ts';
import { lastActivity } from '../../src/checkpoints/activity.ts';
import { startHub } from '../../src/client/start-hub.ts';
import { whileLocked } from '../../src/config/lock-file.ts';
import { loadCredentials } from '../../src/hub/credentials.ts';
import { DecisionLog } from '../../src/hub/inbox/decision-log.ts';
import { makeDirectory, openToAppend } from '../../src/lib/index.ts';
import { createLogger } from '../../src/log/index.ts';
import { readTail, takeHandOver, writeFileAtomic } from '../../src/supervise/index.ts';
import { createTokenFile } from '../../src/supervise/token-file.ts';

const kinds: Readonly<Record<string, (file: string) => unknown>> = {
  'a directory': (file) => mkdirSync(file),
  'a FIFO': (file) => execFileSync('mkfifo', [file]),
  'a link to itself': (file) => symlinkSync(file, file),
  'a file of 1 GiB': (file) => {
    writeFileSync(file, '');
    truncateSync(file, 2 ** 30);
  },
};

/** The error of `use`, or its result. */
const outcomeOf = (use: () => unknown): unknown => {
  try {
    return use();
  } catch (error) {
    return error;
  }
};

const nextStep = /Move it aside: the next start makes a new one/;

t.test(
  'regression: M7 a start does not hang on a file of the home that is something else, and names the next step',
  async (t) => {
    for (const [kind, make] of Object.entries(kinds)) {
      const directory = t.testdir();
      const place = (name: string) => {
        const file = join(directory, name);
        rmSync(file, { recursive: true, force: true });
        make(file);
        return file;
      };
      const canReplace = kind !== 'a directory';
      place('adoption.key');
      const credentials = outcomeOf(() => loadCredentials(directory));
      if (canReplace) t.match(credentials, { file: String }, `${kind} as key: a new key is made`);
      else t.match(credentials, { message: nextStep }, `${kind} as key`);
      const published = outcomeOf(() => writeFileAtomic(place('hub.lock'), 'x'));
      if (canReplace) t.equal(readFileSync(join(directory, 'hub.lock'), 'utf8'), 'x', `${kind} as lock is replaced`);
      else t.match(published, { message: nextStep }, `${kind} as lock`);
      t.match(
        outcomeOf(() => createTokenFile(place('page.token'))),
        { message: nextStep },
        `${kind} as token`,
      );
      t.equal(lastActivity(dirname(place('activity'))), undefined, `${kind} as activity`);
      if (kind === 'a file of 1 GiB') continue;
      t.match(
        outcomeOf(() => openToAppend(place('stderr.log'))),
        { message: nextStep },
        `${kind} as log`,
      );
      if (canReplace)
        t.match(
          outcomeOf(() => makeDirectory(place('logs'))),
          { message: /^\S+logs is not a directory\. Move it aside/ },
        );
    }
    t.type(openToAppend(join(t.testdir(), 'new.log')), 'number', 'positive control');
    t.equal(readTail(join(t.testdir(), 'missing.log'), 10), '');
  },
);

t.test('regression: M7 a lock of settings that is something else is named, and nothing is changed', async (t) => {
  for (const [kind, make] of Object.entries(kinds)) {
    const file = join(t.testdir(), 'config.json');
    make(`${file}.lock`);
    t.throws(() => whileLocked(file, () => t.fail('the change is made')), { message: nextStep }, kind);
  }
  let changes = 0;
  whileLocked(join(t.testdir(), 'config.json'), () => changes++);
  t.equal(changes, 1, 'positive control');
});

t.test(
  'regression: M7 a directory of a clone in the place of appserver.lock is named, and an order to hand over is dropped',
  async (t) => {
    const root = realpathSync(
      t.testdir({ home: {}, ws: { '.oratorio': { 'config.json': '{}', 'appserver.lock': { x: '' } } } }),
    );
    const [home, path] = [join(root, 'home'), join(root, 'ws')];
    const held = holdWorkspace(path, home);
    t.teardown(() => held.release());
    const address = {
      ...{ version: 1, pid: process.pid, identity: null, workspacePath: path, managedByHub: false, incarnation: 'i' },
      ...{ adoptionProof: null, startedAt: '2026-11-28T00:00:00.000Z', serverVersion: '0', endpoints: {} },
    };
    // @ts-expect-error -- a part of an address suffices: nothing reads it
    t.throws(() => held.publish(address), { message: nextStep });
    t.doesNotThrow(() => held.withdraw());
    mkdirSync(join(held.stateDirectory, 'hand-over.json'));
    t.equal(takeHandOver(home, path, 'i'), undefined);
    t.equal(takeHandOver(home, path, 'i'), undefined, 'nothing is left of it');
  },
);

t.test('regression: M7 a Hub whose log is something else is not started, and the reason names the log', async (t) => {
  for (const [kind, make] of Object.entries(kinds)) {
    if (kind === 'a file of 1 GiB') continue;
    const home = t.testdir({ hub: {} });
    make(join(home, 'hub', 'hub.log'));
    await t.rejects(startHub(home, { command: process.execPath, args: ['-e', ''] }), { message: nextStep }, kind);
  }
});

t.test(
  'regression: M7 a FIFO in the place of the record of decisions stops neither a decision nor a reader',
  async (t) => {
    const directory = t.testdir();
    const warnings: string[] = [];
    const log = new DecisionLog(
      directory,
      createLogger({ name: 'test', stream: { write: (text) => warnings.push(text) } }),
    );
    execFileSync('mkfifo', [join(directory, 'inbox.jsonl')]);
    log.add({
      ...{ at: '2026-11-28T00:00:00.000Z', workspaceId: 'w', workspacePath: '/w', requestId: 'r', threadId: 't' },
      ...{ tool: 'Exec', operation: 'run', target: 'ls', decision: 'accept', decidedBy: 'api', reason: 'answered' },
      ...{ token: 'hub', remoteAddress: '127.0.0.1' },
    });
    await log.flush();
    t.match(warnings.join(''), /could not record a decision/);
    await t.rejects(log.read(5), { message: /not a regular file/ });
  },
);
