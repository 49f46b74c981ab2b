import { dirname, join } from 'node:path';
import * as v from 'valibot';
import {
  findAgentCommand,
  installHintOf,
  presetNames,
  presets,
  registryAgents,
  registryCommand,
  registryDate,
  registryInstallHint,
} from '../../external/index.ts';
import { readBoundedFile } from '../../lib/index.ts';
import { agentPresets } from '../../protocol/index.ts';
import type { CommandContext } from '../command.ts';
import { exitCodes } from '../exit-codes.ts';
import { columns } from '../render.ts';

/** `oratorio agents`: agents that can do the turns of a workspace. Runs none of them. */
export async function run({ output, env }: CommandContext): Promise<number> {
  const agents = presetNames.map((name) => {
    const preset = presets[name];
    const command = findAgentCommand(preset.program, env['PATH'] ?? '');
    const path = command?.at(-1) ?? null;
    return {
      name,
      isInstalled: path !== null,
      path,
      version: path === null ? null : versionOf(path, preset.package),
      testedVersion: preset.tested,
      isTried: true,
      approvals: agentPresets[name].approvals,
      login: preset.login,
      install: installHintOf(preset),
    };
  });
  const listed = registryAgents.map((agent) => {
    const path = findAgentCommand(registryCommand(agent)[0], env['PATH'] ?? '')?.at(-1) ?? null;
    return {
      name: agent.id,
      isInstalled: path !== null,
      path,
      version: agent.how === 'program' ? null : agent.version,
      fetchedBy: agent.how === 'program' ? null : agent.how,
      testedVersion: null,
      isTried: false,
      approvals: 'none',
      login: `oratorio login --agent ${agent.id}`,
      install: registryInstallHint(agent),
      site: agent.site,
      licence: agent.license,
    };
  });
  if (output.json) {
    output.document([...agents, ...listed]);
    return exitCodes.ok.code;
  }
  const rows = agents.map(({ name, isInstalled, version, approvals, login, install }) => [
    name,
    isInstalled ? (version ?? 'yes') : 'no',
    approvals === 'asks' ? 'asks' : 'does not ask',
    isInstalled ? `log in: ${login}` : install,
  ]);
  for (const line of columns(['AGENT', 'INSTALLED', 'APPROVALS', 'NEXT'], rows, output)) output.line(line);
  output.line();
  output.line(
    `From the registry of agents, as of ${registryDate}. Not tested with Oratorio; they may act without asking:`,
  );
  const others = listed.map(({ name, isInstalled, version, fetchedBy, login, install }) => [
    name,
    isInstalled ? (fetchedBy === null ? 'yes' : `no: ${fetchedBy} fetches ${version}`) : 'no',
    'not tried',
    isInstalled ? `log in: ${login}` : install,
  ]);
  for (const line of columns(['AGENT', 'INSTALLED', 'TRIED', 'NEXT'], others, output)) output.line(line);
  output.line();
  output.line('To use one in this workspace: oratorio up --agent <name>; back: oratorio up --agent oratorio');
  return exitCodes.ok.code;
}

const Manifest = v.object({ name: v.string(), version: v.string() });
const manifestBytes = 1_048_576;

/** Version of the package that a program belongs to; null: the program is of no npm package. */
function versionOf(program: string, name: string): string | null {
  for (let directory = dirname(program); directory !== dirname(directory); directory = dirname(directory)) {
    const manifest = v.safeParse(Manifest, manifestIn(directory));
    if (manifest.success && manifest.output.name === name) return manifest.output.version;
  }
  return null;
}

/** Undefined where no manifest can be read. */
function manifestIn(directory: string): unknown {
  try {
    const text = readBoundedFile(join(directory, 'package.json'), { maxBytes: manifestBytes, owner: 'any' });
    return text === undefined ? undefined : JSON.parse(text);
  } catch {
    return undefined;
  }
}
