/** Parts of the tests of agents: a workspace of a real agent, answers from a second device, and a client. */
import { mkdtempSync, readlinkSync, rmSync } from 'node:fs';
import { homedir } from 'node:os';
import { delimiter, join } from 'node:path';
import type { Test } from 'tap';
import { AppServerClient } from '../../src/client/index.ts';
import { presets } from '../../src/external/index.ts';
import type { InboxItem, Turn } from '../../src/protocol/index.ts';
import { commandLine } from '../../src/supervise/index.ts';
import { listPids } from '../../src/supervise/procfs.ts';
import type { Teardown } from '../e2e/harness.ts';
import { eventually, makeWorkspace, quick, type TestHub } from '../hub/harness.ts';
import { type Subject, subjects } from './subjects.ts';
import { variable } from './variables.ts';

export type InputPart =
  | { readonly type: 'text'; readonly text: string }
  | { readonly type: 'image'; readonly url: string };

/** Agents to test. */
export function chosenSubjects(): readonly Subject[] {
  const chosen = process.env[variable.names]?.split(',');
  return subjects.filter(({ name }) => chosen?.includes(name) ?? true);
}

/** Configuration of an agent on the scripted model, with a home directory of its own. */
export function agentSettings(t: Teardown, { name, configure }: Subject, modelUrl: string) {
  const programs = process.env[variable.programs];
  if (programs === undefined) throw new Error(`${variable.programs} is not set: run npm run test:agents`);
  // Not below /tmp: the sandbox of codex hides its files.
  const home = mkdtempSync(join(homedir(), '.oratorio-agents-'));
  t.teardown(() => rmSync(home, { recursive: true, force: true, maxRetries: 5 }));
  const { program, args } = presets[name];
  const Env = { HOME: home, PATH: [programs, process.env['PATH']].join(delimiter), ...configure(home, modelUrl) };
  return { home, Agent: { Name: name, Command: [join(programs, program), ...args], Env } };
}

/** A workspace whose turns the agent does, on the scripted model. */
export function agentWorkspace(
  t: Test,
  subject: Subject,
  modelUrl: string,
  config: (home: string) => object = () => ({}),
) {
  const { home, Agent } = agentSettings(t, subject, modelUrl);
  return { home, workspace: makeWorkspace(t, { ...quick, Agent, ...config(home) }) };
}

/** Answers every question at the inbox until `done` resolves, as a second device does. @returns how many */
export async function answerUntil(
  hub: TestHub,
  done: Promise<unknown>,
  decision: 'accept' | 'decline' = 'accept',
): Promise<number> {
  let answered = 0;
  let isDone = false;
  const finish = () => {
    isDone = true;
  };
  void done.then(finish, finish);
  await eventually(async () => {
    for (const { workspaceId, request } of (await hub.call('GET', '/v1/inbox')).body as InboxItem[]) {
      const { status } = await hub.call('POST', `/v1/inbox/${workspaceId}/${request.requestId}`, { decision });
      if (status === 200) answered += 1;
    }
    return isDone || undefined;
  }, 'the turn ends');
  await done;
  return answered;
}

/** A client of the workspace's agent server that follows turns to their ends. */
export async function connectTurns(t: Test, url: string) {
  const client = await AppServerClient.connect(url, { clientInfo: { name: 'agents', version: '1' } });
  t.teardown(() => client.close());
  const ends = new Map<string, PromiseWithResolvers<Turn>>();
  const endOf = (turnId: string) => {
    const end = ends.get(turnId) ?? Promise.withResolvers<Turn>();
    ends.set(turnId, end);
    return end;
  };
  client.onNotification(({ method, params }) => {
    const turn = params['turn'] as Turn;
    if (/^turn\/(completed|failed|cancelled)$/.test(method)) endOf(turn.id).resolve(turn);
  });
  return {
    client,
    /** Starts a turn. @returns its id, and the turn once it has ended */
    async start(threadId: string, ...input: readonly InputPart[]) {
      const { turn } = (await client.request('turn/start', { threadId, input })) as { turn: Turn };
      return { turnId: turn.id, ended: endOf(turn.id).promise };
    },
  };
}

/** Processes of commands that never end and run in the workspace. */
export const linesHeld = (workspace: string): readonly number[] =>
  listPids().filter((pid) => {
    if (!commandLine(pid).startsWith('tail -s 1234')) return false;
    try {
      return readlinkSync(`/proc/${pid}/cwd`) === workspace;
    } catch {
      // The process has ended since.
      return false;
    }
  });
