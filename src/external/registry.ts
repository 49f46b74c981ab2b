/** Agents of the public ACP registry, as stored by `npm run agents:registry`. They are not tested with Oratorio. */
import * as v from 'valibot';
import { ownAgent, presetNames } from '../protocol/index.ts';
import stored from './agent-registry.generated.json' with { type: 'json' };

const words = v.pipe(v.string(), v.trim(), v.nonEmpty(), v.maxLength(200), v.regex(/^[^\p{C}\u2028\u2029]*$/u));
const address = v.pipe(v.string(), v.maxLength(500), v.regex(/^https:\/\/[\w.-]+(?:\/[\w./#?=&%@+~-]*)?$/));
/** A package with a fixed version: it has no other source, and changes only when the list is renewed. */
const npmPackage = v.pipe(v.string(), v.regex(/^(?:@[a-z\d][\w.-]*\/)?[a-z\d][\w.-]*@\d[\w.+-]*$/i), v.maxLength(200));
const pythonPackage = v.pipe(v.string(), v.regex(/^[a-z\d][\w.-]*(?:==|@)\d[\w.+-]*$/i), v.maxLength(200));
const programName = v.pipe(v.string(), v.regex(/^[a-z\d][\w.-]{0,99}$/i));
/** Variables that make a program, or the tool that fetches it, load other code. */
const loadsCode = /^(?:PATH|HOME|ENV|BASH_ENV|NODE_\w+|NPM_\w+|UV_\w+|PIP_\w+|PYTHON\w*|LD_\w+|DYLD_\w+)$/i;

const common = {
  id: v.pipe(
    v.string(),
    v.regex(/^[a-z][a-z\d-]{0,49}$/),
    v.check((id) => id !== ownAgent && !presetNames.some((name) => name === id)),
  ),
  name: words,
  version: v.pipe(v.string(), v.regex(/^\d[\w.+-]{0,49}$/)),
  site: address,
  license: words,
  args: v.pipe(v.array(words), v.maxLength(20)),
  env: v.pipe(
    v.record(
      v.pipe(
        v.string(),
        v.regex(/^[A-Z_][A-Z\d_]{0,99}$/i),
        v.check((name) => !loadsCode.test(name)),
      ),
      words,
    ),
    v.maxEntries(20),
  ),
};

/** An agent with its start command: a package that `npx` or `uvx` fetches, or a program that the user installs. */
export const RegistryAgent = v.variant('how', [
  v.object({ ...common, how: v.literal('npx'), what: npmPackage }),
  v.object({ ...common, how: v.literal('uvx'), what: pythonPackage }),
  v.object({ ...common, how: v.literal('program'), what: programName }),
]);
export type RegistryAgent = v.InferOutput<typeof RegistryAgent>;

const maxAgents = 200;

/** Usable agents of a list, the first for each id. Malformed entries are left out. */
export function agentsIn(list: readonly unknown[]): readonly RegistryAgent[] {
  const agents = new Map<string, RegistryAgent>();
  for (const entry of list) {
    const parsed = v.safeParse(RegistryAgent, entry);
    if (parsed.success && !agents.has(parsed.output.id)) agents.set(parsed.output.id, parsed.output);
  }
  return [...agents.values()].slice(0, maxAgents);
}

/** Day on which the registry was read. */
export const registryDate: string = stored.date;
export const registryAgents: readonly RegistryAgent[] = agentsIn(stored.agents);

/** Program and arguments. */
export function registryCommand({ how, what, args }: RegistryAgent): readonly [string, ...string[]] {
  if (how === 'npx') return ['npx', '--yes', what, ...args];
  return how === 'uvx' ? ['uvx', what, ...args] : [what, ...args];
}

/** Next step for a user who lacks the program. */
export function registryInstallHint({ how, what, site }: RegistryAgent): string {
  if (how === 'program') return `Install ${what}: ${site}`;
  return `Install ${how}, which fetches ${what} at the first start`;
}
