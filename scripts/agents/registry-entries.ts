/** Entries of the registry of agents, in the form of our own list. */
import { basename } from 'node:path/posix';
import * as v from 'valibot';
import { RegistryAgent } from '../../src/external/registry.ts';
import { visible } from '../../src/lib/index.ts';

export const registrySource = 'https://cdn.agentclientprotocol.com/registry/v1/latest/registry.json';

/** Ids of agents with a preset. */
const withPreset: ReadonlySet<string> = new Set([
  ...['codex-acp', 'claude-acp', 'gemini', 'opencode', 'qwen-code', 'goose', 'pi-acp'],
  'oratorio',
]);

const words = v.optional(v.array(v.string()), []);
const variables = v.optional(v.record(v.string(), v.string()), {});
const Package = v.object({ package: v.string(), cmd: v.optional(v.string()), args: words, env: variables });
const Binary = v.object({ cmd: v.string(), args: words, env: variables });
const Entry = v.object({
  id: v.string(),
  name: v.string(),
  version: v.string(),
  website: v.optional(v.string()),
  repository: v.optional(v.string()),
  license: v.optional(v.string(), 'unknown'),
  distribution: v.object({
    npx: v.optional(Package),
    uvx: v.optional(Package),
    binary: v.optional(v.record(v.string(), Binary)),
  }),
});
type Entry = v.InferOutput<typeof Entry>;

const Registry = v.object({ agents: v.pipe(v.array(v.unknown()), v.maxLength(1_000)) });
const Named = v.object({ id: v.pipe(v.string(), v.maxLength(100)) });

export interface Entries {
  /** By id. */
  readonly agents: readonly RegistryAgent[];
  readonly leftOut: readonly { readonly id: string; readonly reason: string }[];
}

/** @throws Error for another document */
export function entriesOf(document: unknown): Entries {
  const parsed = v.safeParse(Registry, document);
  if (!parsed.success) throw new Error('This is not a registry of agents.');
  const agents = new Map<string, RegistryAgent>();
  const leftOut: { id: string; reason: string }[] = [];
  for (const each of parsed.output.agents) {
    const id = v.is(Named, each) ? JSON.stringify(each.id).slice(1, -1) : 'an entry without an id';
    if (withPreset.has(id)) continue;
    const made = agentOf(each);
    if (typeof made === 'string') leftOut.push({ id, reason: made });
    else if (agents.has(made.id)) leftOut.push({ id, reason: 'there is another entry of this id' });
    else agents.set(made.id, made);
  }
  return { agents: [...agents.values()].sort((one, other) => (one.id < other.id ? -1 : 1)), leftOut };
}

/** @returns why an entry is left out */
function agentOf(value: unknown): RegistryAgent | string {
  const entry = v.safeParse(Entry, value);
  if (!entry.success) return problemOf(entry.issues);
  const { id, name, version, website, repository, license } = entry.output;
  const start = startOf(entry.output);
  if (start === undefined) return 'it has no package without a program of its own, and no program';
  const site = website ?? repository;
  const agent = v.safeParse(RegistryAgent, { id, name, version, site, license, ...start });
  return agent.success ? agent.output : problemOf(agent.issues);
}

/** A package is preferred: it needs no archive. One with a program of another name cannot be started by its name. */
function startOf({ distribution: { npx, uvx, binary } }: Entry) {
  if (npx && npx.cmd === undefined) return { how: 'npx', what: npx.package, args: npx.args, env: npx.env };
  if (uvx && uvx.cmd === undefined) return { how: 'uvx', what: uvx.package, args: uvx.args, env: uvx.env };
  const target = binary?.['linux-x86_64'] ?? Object.values(binary ?? {})[0];
  return target && { how: 'program', what: basename(target.cmd), args: target.args, env: target.env };
}

const problemOf = ([issue]: readonly [v.BaseIssue<unknown>, ...v.BaseIssue<unknown>[]]): string =>
  `${visible(v.getDotPath(issue) ?? 'it').slice(0, 200)} cannot be used`;
