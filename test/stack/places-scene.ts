/** Scene of the tests of places: a Hub with an engine of the run, turns in containers, and questions to the engine. */
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { Test } from 'tap';
import { root } from '../../scripts/toolchain.mjs';
import { AppServerClient } from '../../src/client/index.ts';
import type { AppServerRecord } from '../../src/protocol/index.ts';
import { must } from '../deploy/must.ts';
import { eventually, startTestHub, type TestHub, temporaryDirectory } from '../hub/harness.ts';
import { startEngine } from './engine.ts';
import { isPodman, startPodman } from './podman.ts';
import { images, variable, variables } from './variables.ts';

/** Socket of the engine that `docker` asks: `DOCKER_HOST` names it. */
export const engineSocket = (): string => (process.env['DOCKER_HOST'] ?? '').replace('unix://', '');

/** Directory of that engine, for `signalEngine`. */
export const engineDirectory = (): string => dirname(engineSocket());

/** Whether containers run on when that engine is killed: those of Docker end when it is started again. */
export const keepsContainers = (): boolean => isPodman(engineDirectory());

/** Whether that engine runs as a user without root. */
export const isRootless = (): boolean => process.getuid?.() !== 0;

/** Whether that engine can pause a container: a rootless engine needs control groups of version 2. */
export const canPause = (): boolean => !isRootless() || existsSync('/sys/fs/cgroup/cgroup.controllers');

/** Starts that engine again after it was killed or stopped. @param more further arguments for Docker */
export async function restartEngine(...more: string[]): Promise<void> {
  const directory = engineDirectory();
  await (isPodman(directory) ? startPodman({ directory }) : startEngine(directory, variable('cgroup'), more));
}

interface Teardown {
  teardown(work: () => unknown): void;
}

export const agentServer = {
  command: process.execPath,
  args: ['--disable-warning=ExperimentalWarning', join(root, 'dist/appserver/main.cjs')],
};
export const place = { kind: 'container' } as const;
export const docker = (...words: string[]) => must('docker', words, { timeoutMs: 60_000 });

/** Containers of any Hub, ended ones included. */
export const containers = async (): Promise<string[]> =>
  (await docker('ps', '--all', '--quiet', '--filter', 'label=dev.oratorio.home')).split('\n').filter(Boolean);

/** Creates a home whose settings name an engine and an image. */
export function homeOf(t: Test, container: Readonly<Record<string, unknown>> = {}): string {
  const home = temporaryDirectory(t, 'oratorio-home-');
  const Container = { Engine: engineSocket(), Image: images.base, Network: 'none', AllowRoot: true, ...container };
  writeFileSync(join(home, 'config.json'), JSON.stringify({ Place: { Container } }), { mode: 0o600 });
  return home;
}

/** Mounts 64 MiB of memory at a directory, for this user or another one. */
export async function mountSmall(t: Teardown, directory: string, uid = 0): Promise<void> {
  const options = `size=64m,mode=700,uid=${uid},gid=${uid}`;
  await must('mount', ['-t', 'tmpfs', '-o', options, 'tmpfs', directory], { timeoutMs: 10_000 });
  t.teardown(() => must('umount', ['--lazy', directory], { timeoutMs: 10_000 }));
}

/** Directory of 64 MiB. A user without root cannot mount one: the run names it. */
export async function smallDirectory(t: Test): Promise<string> {
  const given = process.env[variables.small];
  if (given !== undefined) return given;
  const directory = join(temporaryDirectory(t, 'oratorio-full-'), 'home');
  mkdirSync(directory, { mode: 0o700 });
  await mountSmall(t, directory);
  return directory;
}

export const hubOf = (t: Test, home: string) => startTestHub(t, { home, agentServer });

interface Item {
  readonly type: string;
  readonly text?: string;
}

/** Runs one turn of the demo model to its end. */
export async function turn(record: Pick<AppServerRecord, 'endpoints'>, text: string): Promise<Item[]> {
  const client = await AppServerClient.connect(record.endpoints['appServerWebSocket'] ?? '');
  try {
    const { thread } = (await client.request('thread/start', { config: { approvalPolicy: 'autoApprove' } })) as {
      thread: { id: string };
    };
    await client.request('turn/start', { threadId: thread.id, input: [{ type: 'text', text }] });
    return await eventually(async () => {
      const read = await client.request('thread/read', { threadId: thread.id, includeTurns: true });
      const { turns } = (read as { thread: { turns: { completedAt?: string; items: Item[] }[] } }).thread;
      return turns[0]?.completedAt === undefined ? undefined : turns[0].items;
    }, 'the turn ends');
  } finally {
    client.close();
  }
}

export const output = (items: readonly Item[]): string =>
  items.flatMap(({ type, text }) => (type === 'toolResult' ? (text ?? '') : [])).join('\n');

export const settled = (hub: TestHub, workspace: string, wanted: (record: AppServerRecord) => boolean) =>
  eventually(async () => {
    const record = await hub.record(workspace);
    return wanted(record) ? record : undefined;
  }, 'the record changes');
