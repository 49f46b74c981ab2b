/** Findings of the tests with real packages: `results.json`, from which the tables of docs/agents.md are made. */
import { readFileSync, writeFileSync } from 'node:fs';
import * as v from 'valibot';

/** Processes of a workspace that are killed. The worker is the process below an adapter that does the work. */
export const victims = ['Hub', 'agent server', 'agent', 'worker', 'tool child'] as const;
export type Victim = (typeof victims)[number];

const Kills = v.strictObject({
  /** Each with SIGKILL, a recovery and a stop. */
  rounds: v.number(),
  /** Processes of the workspace at the kills, in all rounds. */
  processes: v.number(),
  /** Items announced to a client, all of which were in the thread afterwards. */
  items: v.number(),
});

const Findings = v.strictObject({
  /** Package and version, also of the agent behind an adapter. */
  packages: v.array(v.string()),
  /** Answers to the questions of `capabilities`. */
  capabilities: v.optional(v.record(v.string(), v.boolean())),
  kills: v.optional(v.record(v.picklist(victims), Kills)),
});
export type Findings = v.InferOutput<typeof Findings>;

const Results = v.record(v.string(), Findings);

const file = new URL('../../test/agents/results.json', import.meta.url);

/** Results by the name of the agent. */
export const readResults = (): v.InferOutput<typeof Results> =>
  v.parse(Results, JSON.parse(readFileSync(file, 'utf8')));

/** Adds to the results of an agent; those of other packages are dropped. */
export function record(name: string, packages: readonly string[], found: Omit<Findings, 'packages'>): void {
  const all = readResults();
  const before = all[name]?.packages.join() === packages.join() ? all[name] : undefined;
  const kills = { ...before?.kills, ...found.kills };
  const merged = { packages: [...packages], ...before, ...found, ...(Object.keys(kills).length > 0 && { kills }) };
  const sorted = Object.entries({ ...all, [name]: merged }).toSorted(([a], [b]) => a.localeCompare(b));
  writeFileSync(file, `${JSON.stringify(Object.fromEntries(sorted), null, 2)}\n`);
}
