/** Agent servers that kill themselves, their Hub or both at random steps of several turns at once. */
import { messageOf } from '../../src/lib/index.ts';
import type { Message } from './harness.ts';
import { faultsOf, KilledWorkspace, type Prepared, spawnHubAndServer, unsoundCalls } from './killed-turns.ts';
import type { ScriptName } from './turn-scripts.ts';

/** Turns that run at the same time. */
const batch: readonly ScriptName[] = ['work', 'work', 'once', 'ask', 'retry'];

export interface RandomKills {
  /** Minimum number of killed turns: a kill during five turns counts as five. */
  readonly moments: number;
  /** Minimum number of killed processes. */
  readonly kills: number;
  /** Kill the Hub, alone or with the agent server; default: an agent server without a Hub. */
  readonly killsHub?: boolean;
  /** Default: true. Without a sandbox a command starts a third of the processes. */
  readonly hasSandbox?: boolean;
  /** Returns the next number, from 0 to 1. */
  readonly random: () => number;
  /** Called after each batch of turns. */
  readonly onBatch?: (so: KillResult) => void;
}

export interface KillResult {
  readonly moments: number;
  readonly kills: number;
  readonly turns: number;
  /** Differences from turns without a kill. */
  readonly faults: readonly string[];
}

/** Numbers from 0 to 1 that follow from a seed. */
export function randomOf(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

async function runBatch(place: KilledWorkspace, kill: () => void): Promise<readonly Prepared[]> {
  const turns: Prepared[] = [];
  for (const script of batch) turns.push(await place.prepare(script));
  kill();
  for (const turn of turns) place.begin(turn);
  return turns;
}

const isWithin = ({ startedAt, completedAt }: Message, at: number): boolean =>
  Date.parse(startedAt) <= at && at <= Date.parse(completedAt);
const asks = ({ script }: Prepared): boolean => script === 'ask';
const ignore = (): void => undefined;

/** Whether the server dies before these turns have ended. */
async function diesIn(place: KilledWorkspace, turns: readonly Prepared[], isNew: boolean): Promise<boolean> {
  const dies = place.hasEnded.then(() => true);
  const isOver = (async () => {
    if (isNew) await place.connect();
    for (const turn of turns.filter(asks)) place.accept(turn).catch(ignore);
    await Promise.all(turns.map((turn) => place.ended(turn)));
    // The moment may come with the commit of the last end.
    return place.isArmed ? false : dies;
  })();
  // A failure counts only while the server lives: the death of a server fails the requests.
  isOver.catch(ignore);
  return Promise.race([dies, isOver.catch((error: unknown) => (place.isArmed ? Promise.reject(error) : dies))]);
}

/** Kills servers at random steps until there are enough moments. */
export async function killAtRandom(
  t: ConstructorParameters<typeof KilledWorkspace>[0],
  kills: RandomKills,
): Promise<KillResult> {
  const userSettings = kills.hasSandbox === false ? { Tools: { Shell: { Sandbox: 'off' } } } : undefined;
  const place = new KilledWorkspace(t, kills.killsHub ? spawnHubAndServer : undefined, userSettings);
  try {
    return await killIn(place, kills);
  } catch (error) {
    throw new Error(`${messageOf(error)}; logs of the servers: ${place.bugs.join('\n')}`, { cause: error });
  }
}

async function killIn(
  place: KilledWorkspace,
  { moments: wanted, kills: wantedKills, random, killsHub = false, onBatch }: RandomKills,
): Promise<KillResult> {
  await place.connect();
  for (const turn of await runBatch(place, ignore)) {
    if (asks(turn)) await place.accept(turn);
    const turns = await place.ended(turn);
    place.setControl(turn.script, turns[turn.before]);
  }
  const faults: string[] = [];
  let [moments, kills, turns] = [0, 0, 0];
  // A larger step may lie after the end of the turns.
  let steps = 400;
  const deaths: number[] = [];
  const arm = () =>
    place.arm({ kind: 'step', step: 1 + Math.floor(random() * steps) }, { isHubAlone: killsHub && random() < 0.5 });
  while (moments < wanted || kills < wantedKills) {
    const started = await runBatch(place, arm);
    const lives = random() < 0.5 ? 2 : 1;
    for (let life = 1; life <= lives && (await diesIn(place, started, life > 1)); life += 1) {
      kills += 1;
      deaths.push(Date.now());
      await place.restart();
      if (life < lives) arm();
    }
    if (place.isArmed) {
      steps = Math.max(20, Math.floor(steps * 0.95));
      place.disarm();
    }
    await place.connect();
    for (const turn of started) {
      if (asks(turn)) place.accept(turn).catch(ignore);
      const ended = await place.ended(turn);
      faults.push(...faultsOf(place, turn, ended).map((fault) => `${turn.name} (${turn.script}): ${fault}`));
      moments += deaths.filter((at) => isWithin(ended[turn.before], at)).length;
      turns += 1;
    }
    onBatch?.({ moments, kills, turns, faults });
  }
  faults.push(...unsoundCalls(place.requests), ...place.bugs);
  const { actors, calls } = place.rows;
  if (actors !== 0 || calls !== 0) faults.push(`rows of ended turns are left: ${actors} and ${calls}`);
  return { moments, kills, turns, faults };
}
