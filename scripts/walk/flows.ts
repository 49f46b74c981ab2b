import { globSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { AppServerClient, HubClient, type ReceivedEvent, startThread, startTurn } from '../../src/client/index.ts';
import { trustWorkspace, workspaceStateDirectory } from '../../src/config/index.ts';
import type { AppServerLock, HubLock } from '../../src/protocol/index.ts';
import { root } from '../toolchain.mjs';
import { TracedProcess, type Walked } from './traced-process.ts';

/** A directory for one run of a flow, with the steps that end the run. */
export interface Place {
  readonly directory: string;
  readonly env: NodeJS.ProcessEnv;
  /** Called after the run, the last one first. */
  readonly ends: (() => Promise<unknown>)[];
}

/** One flow, or several that need the same processes. @returns the walk of each part, by its name */
export type Flow = (place: Place) => Promise<ReadonlyMap<string, Walked>>;

const deadlineMs = 60_000;

/** Tries until `probe` returns a value. @throws Error after a minute */
async function until<T>(event: string, probe: () => T | undefined | Promise<T | undefined>): Promise<T> {
  const deadline = Date.now() + deadlineMs;
  for (;;) {
    const found = await probe();
    if (found !== undefined) return found;
    if (Date.now() > deadline) throw new Error(`${event}: not within ${deadlineMs} ms`);
    await sleep(25);
  }
}

function readJson<T>(file: string): T | undefined {
  try {
    return JSON.parse(readFileSync(file, 'utf8')) as T;
  } catch {
    // Not written yet.
    return undefined;
  }
}

const stubAgent = { Name: 'stub', Command: [process.execPath, join(root, 'test', 'external', 'stub-agent.mjs')] };

/** A trusted workspace with these settings. */
function makeWorkspace({ directory }: Place, settings: object): string {
  const workspace = join(directory, 'workspace');
  mkdirSync(join(workspace, '.oratorio'), { recursive: true });
  writeFileSync(join(workspace, '.oratorio', 'config.json'), JSON.stringify(settings));
  trustWorkspace({ home: join(directory, 'home'), workspace });
  return workspace;
}

interface Started {
  readonly traced: TracedProcess;
  /** Resolves with the first line of output that matches. */
  readonly line: (pattern: RegExp) => Promise<string>;
}

async function start(place: Place, ...args: string[]): Promise<Started> {
  const output: string[] = [];
  const traced = await TracedProcess.start(args, place.env, (text) => output.push(text));
  place.ends.push(() => traced.stop());
  const line = (pattern: RegExp) => until(`${pattern}`, () => output.find((text) => pattern.test(text)));
  return { traced, line };
}

interface RunningServer {
  readonly server: TracedProcess;
  readonly workspace: string;
  readonly endpoints: AppServerLock['endpoints'];
}

/** An agent server that no Hub manages. */
async function startAgentServer(place: Place, settings: object): Promise<RunningServer> {
  const workspace = makeWorkspace(place, settings);
  const args = ['src/appserver/main.ts', '--workspace', workspace, '--listen', 'ws://127.0.0.1:0'];
  const { traced: server, line } = await start(place, ...args);
  const file = join(workspaceStateDirectory(join(place.directory, 'home'), workspace), 'appserver.json');
  const { endpoints } = await until('the agent server serves', () => readJson<AppServerLock>(file));
  await line(/"the code of turns is loaded"/);
  return { server, workspace, endpoints };
}

async function startHub(place: Place): Promise<{ readonly hub: TracedProcess; readonly client: HubClient }> {
  const { traced: hub } = await start(place, 'src/cli/main.ts', 'hub');
  const file = join(place.directory, 'home', 'hub', 'hub.lock');
  const lock = await until('the Hub serves', () => readJson<HubLock>(file));
  const client = new HubClient(lock);
  place.ends.push(() => client.shutdown());
  return { hub, client };
}

/** Runs `action` between two readings of the coverage. */
async function walk(server: TracedProcess, action: () => Promise<unknown>): Promise<Walked> {
  await server.walked();
  await action();
  return server.walked();
}

/** Resolves with the next event of this kind. */
async function nextEvent(place: Place, client: HubClient, kind: string): Promise<ReceivedEvent> {
  const abort = new AbortController();
  place.ends.push(async () => abort.abort());
  for await (const event of client.events({ signal: abort.signal })) if (event.kind === kind) return event;
  throw new Error(`the stream ended before ${kind}`);
}

/** `POST /v1/appservers/ensure` up to `appserver.running` on the stream, first for a stopped, then for a running workspace. */
const ensure: Flow = async (place) => {
  const workspacePath = makeWorkspace(place, { Provider: 'demo', DashBoard: { Enabled: false } });
  const { hub, client } = await startHub(place);
  const running = nextEvent(place, client, 'appserver.running');
  const cold = await walk(hub, () => Promise.all([client.ensure({ workspacePath }), running]));
  const warm = await walk(hub, () => client.ensure({ workspacePath }));
  return new Map([
    ['ensure-cold', cold],
    ['ensure-warm', warm],
  ]);
};

/** Chat completions: a first one, which also tries the sandbox, and its repetition; one that writes a file, and its repetition. */
const chat: Flow = async (place) => {
  const { server, endpoints } = await startAgentServer(place, {
    Provider: 'demo',
    DashBoard: { Enabled: false },
    Api: { Enabled: true, Port: 0 },
  });
  const complete = async (content: string) => {
    const response = await fetch(`${endpoints['api']}/v1/chat/completions`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ model: 'demo', messages: [{ role: 'user', content }] }),
    });
    const answer = await response.text();
    if (!response.ok) throw new Error(`${response.status}: ${answer}`);
  };
  const hello = await walk(server, () => complete('hello'));
  const again = await walk(server, () => complete('hello'));
  await complete('write a.txt: first');
  const write = await walk(server, () => complete('write b.txt: second'));
  return new Map([
    ['chat-hello', hello],
    ['chat-again', again],
    ['chat-write', write],
  ]);
};

/** The demonstration of reviews from its start to the draft; only the room of reviews counts. */
const review: Flow = async (place) => {
  const { traced: backend, line } = await start(place, 'src/cli/main.ts', 'backend', '--demo', '--json');
  const { url } = JSON.parse(await line(/^{"url":/));
  const [file = ''] = globSync('oratorio-demo-*/state/service.token', { cwd: place.directory });
  const headers = { authorization: `Bearer ${readFileSync(join(place.directory, file), 'utf8').trim()}` };
  await until('there is a draft', async () => {
    const response = await fetch(`${url}/api/v1/review-drafts`, { headers });
    const { rows } = (await response.json()) as { readonly rows: readonly unknown[] };
    return rows[0];
  });
  const walked = [...(await backend.walked())].filter(([file]) => file.startsWith('src/review/'));
  return new Map([['review', new Map(walked)]]);
};

const askingAgent = { Agent: stubAgent, DashBoard: { Enabled: false } };

/** A client with a thread whose external agent runs. @param decide answers questions; undefined: the inbox does */
async function connectTo(place: Place, address: string, workspacePath: string, decide?: () => Promise<string>) {
  const client = await AppServerClient.connect(address, {
    clientInfo: { name: 'walk', version: '1' },
    ...(decide && { onRequest: async () => ({ decision: await decide() }) }),
  });
  place.ends.push(async () => client.close());
  const thread = await startThread(client, { workspacePath });
  const turn = async (prompt: string) => {
    for await (const event of await startTurn(client, thread, prompt))
      if (event.type === 'cancelled') throw new Error(prompt);
  };
  await turn('say ready');
  return turn;
}

/** Question of an external agent and its answer, in the agent server. */
const approval: Flow = async (place) => {
  const { server, workspace, endpoints } = await startAgentServer(place, askingAgent);
  const question = Promise.withResolvers<void>();
  const decision = Promise.withResolvers<string>();
  const turn = await connectTo(place, endpoints.appServerWebSocket, workspace, () => {
    question.resolve();
    return decision.promise;
  });
  let ended: Promise<void> | undefined;
  const asked = await walk(server, () => {
    ended = turn('run touch asked');
    return question.promise;
  });
  const decided = await walk(server, async () => {
    decision.resolve('accept');
    await ended;
  });
  return new Map([
    ['approval-asked', asked],
    ['approval-decided', decided],
  ]);
};

/** Question of an external agent and its answer, in the Hub. */
const inbox: Flow = async (place) => {
  const workspacePath = makeWorkspace(place, askingAgent);
  const { hub, client } = await startHub(place);
  const { endpoints } = await client.ensure({ workspacePath });
  const turn = await connectTo(place, endpoints['appServerWebSocket'] ?? '', workspacePath);
  const added = nextEvent(place, client, 'inbox.added');
  const resolved = nextEvent(place, client, 'inbox.resolved');
  let ended: Promise<void> | undefined;
  const asked = await walk(hub, () => {
    ended = turn('run touch asked');
    return added;
  });
  const [item] = await client.inbox();
  if (!item) throw new Error('the inbox is empty');
  const decided = await walk(hub, () =>
    Promise.all([client.answerInbox(item.workspaceId, item.request.requestId, { decision: 'accept' }), resolved]),
  );
  await ended;
  return new Map([
    ['inbox-asked', asked],
    ['inbox-decided', decided],
  ]);
};

/** By the name that `npm run walk` takes. */
export const flows: Readonly<Record<string, Flow>> = { ensure, chat, review, approval, inbox };
