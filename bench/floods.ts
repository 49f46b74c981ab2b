/** A conversation of a workspace while a provider or an external agent of another one sends without a pause. */
import { join } from 'node:path';
import { type AgentServer, startAgentServer } from './agent-server.ts';
import { median, type Peer, quantile, rssKiB } from './harness.ts';
import { floodModels } from './peers/mock-answers.ts';
import { RpcClient } from './rpc-client.ts';

/** Kinds of messages of the flooding agent (`peers/external-agent.mjs`). */
const agentFloods = ['text', 'calls', 'output', 'other'] as const;

export interface BesideFlood {
  readonly name: string;
  /** A turn of the other conversation: without a flood, and during floods. */
  readonly aloneMs: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  /** Median time of a flooding turn, from its start to its end. */
  readonly floodMs: number;
  readonly floods: number;
  /** Resident afterwards. */
  readonly mib: number;
}

async function turnTimes(client: RpcClient, threadId: string, isOver: (turns: number) => boolean): Promise<number[]> {
  const times: number[] = [];
  while (!isOver(times.length)) {
    const { status, ms } = await client.turn(threadId, 'What do you do?');
    if (status !== 'completed') throw new Error(`a turn beside a flood: ${status}`);
    times.push(ms);
  }
  return times.sort((a, b) => a - b);
}

async function beside(server: AgentServer, name: string, flood: Flood, turns: number): Promise<BesideFlood> {
  const [witness, flooder] = [await RpcClient.open(server.url), await RpcClient.open(server.url)];
  try {
    const threadId = await witness.startThread({ agent: 'oratorio' });
    await turnTimes(witness, threadId, (done) => done >= 20);
    const alone = await turnTimes(witness, threadId, (done) => done >= turns);
    const floods: number[] = [];
    let isOver = false;
    const flooding = (async () => {
      while (!isOver || floods.length < 3) {
        const { ms } = await flooder.turn(await flooder.startThread(flood.config), flood.text);
        floods.push(ms);
      }
    })();
    const times = await turnTimes(witness, threadId, (done) => done >= turns && floods.length >= 3);
    isOver = true;
    await flooding;
    return {
      name,
      aloneMs: median(alone),
      p50Ms: median(times),
      p99Ms: quantile(times, 0.99),
      floodMs: median(floods),
      floods: floods.length,
      mib: rssKiB(server.pid) / 1024,
    };
  } finally {
    witness.close();
    flooder.close();
  }
}

interface Flood {
  readonly config: Readonly<Record<string, unknown>>;
  readonly text: string;
}

/** @param turns of the other conversation, for each kind of flood */
export async function besideFloods(upstream: Peer, turns: number): Promise<readonly BesideFlood[]> {
  const file = join(import.meta.dirname, 'peers', 'external-agent.mjs');
  const config = {
    EndPoint: `http://127.0.0.1:${upstream.port}/v1`,
    ...{ ApiKey: 'bench', Model: 'instant' },
    Agent: { Name: 'bench', Command: [process.execPath, file] },
  };
  const floods: readonly (readonly [string, Flood])[] = [
    ...floodModels.map(
      (model) => [`provider, ${model}`, { config: { agent: 'oratorio', model }, text: 'go' }] as const,
    ),
    ...agentFloods.map((kind) => [`external agent, ${kind}`, { config: {}, text: `flood ${kind}` }] as const),
  ];
  const found: BesideFlood[] = [];
  for (const [name, flood] of floods) {
    const server = await startAgentServer({ config });
    try {
      found.push(await beside(server, name, flood, turns));
    } finally {
      await server.stop();
    }
  }
  return found;
}
