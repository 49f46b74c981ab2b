/** Scene of the tests of places: a Hub with an engine of the run, turns in containers, and questions to the engine. */
import { writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { Test } from 'tap';
import { root } from '../../scripts/toolchain.mjs';
import { AppServerClient } from '../../src/client/index.ts';
import type { AppServerRecord } from '../../src/protocol/index.ts';
import { must } from '../deploy/must.ts';
import { eventually, startTestHub, type TestHub, temporaryDirectory } from '../hub/harness.ts';
import { images } from './variables.ts';

/** Socket of the engine that `docker` asks: `DOCKER_HOST` names it. */
export const engineSocket = (): string => (process.env['DOCKER_HOST'] ?? '').replace('unix://', '');

/** Directory of that engine, for `signalEngine`. */
export const engineDirectory = (): string => dirname(engineSocket());

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

export const hubOf = (t: Test, home: string) => startTestHub(t, { home, agentServer });

interface Item {
  readonly type: string;
  readonly text?: string;
}

/** Runs one turn of the demo model to its end. */
export async function turn(record: AppServerRecord, text: string): Promise<Item[]> {
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
