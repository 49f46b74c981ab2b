/** Findings of the tests with real packages: `results.json`, from which the tables of docs/agents.md are made. */
import { readFileSync, writeFileSync } from 'node:fs';
import * as v from 'valibot';
import { type PresetName, presetNames } from '../../src/protocol/index.ts';

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
  /** Package and version, also of the agent behind an adapter, with spaces. */
  packages: v.string(),
  capabilities: v.optional(
    v.strictObject({
      /** A question before it acts; a declined one keeps it from it. */
      asks: v.boolean(),
      /** True when the agent asks our MCP servers for their tools. */
      takesMcpServers: v.boolean(),
      canBeInterrupted: v.boolean(),
      /** The model gets the image of a prompt. */
      seesImages: v.boolean(),
      /** The model gets the conversation after a restart of the agent server. */
      remembers: v.boolean(),
      /** With `Turns.ResumeAgents` it continues the turn in which its agent server was killed. */
      resumes: v.optional(v.boolean()),
      reportsTokens: v.boolean(),
    }),
  ),
  kills: v.optional(v.partial(v.strictObject(v.entriesFromList(victims, Kills)))),
});
export type Findings = v.InferOutput<typeof Findings>;

const Results = v.partial(v.strictObject(v.entriesFromList(presetNames, Findings)));
export type Results = v.InferOutput<typeof Results>;
export type Capability = keyof NonNullable<Findings['capabilities']>;

const file = new URL('../../test/agents/results.json', import.meta.url);

/** Results by the name of the agent. */
export const readResults = (): v.InferOutput<typeof Results> =>
  v.parse(Results, JSON.parse(readFileSync(file, 'utf8')));

/** Adds to the results of an agent; those of other packages are dropped. */
export function record(name: PresetName, packages: string, found: Omit<Findings, 'packages'>): void {
  const all = readResults();
  const before = all[name]?.packages === packages ? all[name] : undefined;
  const kills = { ...before?.kills, ...found.kills };
  const merged = { packages, ...before, ...found, ...(Object.keys(kills).length > 0 && { kills }) };
  const sorted = Object.entries({ ...all, [name]: merged }).toSorted(([a], [b]) => a.localeCompare(b));
  writeFileSync(file, `${JSON.stringify(Object.fromEntries(sorted), null, 2)}\n`);
}
