import {
  brief,
  createBuiltinTools,
  createSkillTool,
  describeCommands,
  Library,
  nestedInstructionsFor,
  ownSystemPrompt,
  promptParts,
  sandboxStatus,
  selectTools,
  textReader,
} from '../../agent/index.ts';
import { ConfigError, loadConfig, workspaceAbove } from '../../config/index.ts';
import type { CommandContext } from '../command.ts';
import { CliError, invalidConfig } from '../errors.ts';
import { exitCodes } from '../exit-codes.ts';
import { columns, inLine } from '../render.ts';
import { canonical, isWorkspace, workspacePath } from '../workspace.ts';

/** Bytes of a token, roughly: as the runtime estimates before a provider has counted. */
const bytesPerToken = 4;

/** `oratorio context`: shows the initial context of a new conversation. */
export async function run(context: CommandContext): Promise<number> {
  const { output, home, env, argument } = context;
  const directory = canonical(workspacePath(context, argument));
  const workspace = enclosing(directory, home);
  if (workspace !== directory) output.note(`· Workspace ${inLine(workspace)}: the directory is in it`);
  const loaded = configOf(context, workspace);
  const { config } = loaded;
  const { BlockedPaths: blockedPaths, DefaultApprovalPolicy: policy } = config.Permissions;
  const { Sandbox, Network } = config.Tools.Shell;
  const read = textReader({ blockedPaths, home });
  const library = new Library(home);
  const tools = selectTools(
    [
      ...createBuiltinTools({
        tools: config.Tools,
        blockedPaths,
        passEnvironment: [],
        secrets: [],
        environment: env,
        home,
      }),
      createSkillTool(library),
    ],
    config.EnabledTools,
  );
  const commands = describeCommands(await sandboxStatus(Sandbox, env, Network), Network);
  const surroundings = { home, read, library, commands: () => commands };
  const parts = promptParts({
    workspacePath: workspace,
    briefing: await brief(surroundings, workspace, true),
    tools: tools.map(({ name }) => name),
    policy,
    commands,
    additions: [ownSystemPrompt(loaded)],
  }).map(({ name, text }) => sized(name, text));
  const declarations = tools.map(({ name, description, inputSchema }) => ({ name, description, inputSchema }));
  const nested = await nestedInstructionsFor(read, directory, workspace);
  const sizes = [
    ...parts,
    sized('tool declarations', JSON.stringify(declarations)),
    ...nested.map(({ path, text }) => sized(path, text)),
  ];
  const problems = (['skills', 'commands', 'agentTypes'] as const).flatMap((kind) => library[kind](workspace).problems);
  if (output.json) {
    output.document({
      workspacePath: workspace,
      parts,
      tools: { names: tools.map(({ name }) => name), ...sizeOf(JSON.stringify(declarations)) },
      nested: nested.map((each) => ({ ...each, ...sizeOf(each.text) })),
      problems,
    });
    return exitCodes.ok.code;
  }
  for (const { path, problem } of problems) output.note(`! ${path} is left out: ${problem}`);
  const rows = sizes.map(({ name, bytes, tokens }) => [name, String(bytes), `≈ ${tokens}`]);
  for (const row of columns(['PART', 'BYTES', 'TOKENS'], rows, output)) output.line(row);
  for (const { name, text } of [...parts, ...nested.map(({ path, text }) => ({ name: path, text }))]) {
    output.line('');
    output.line(output.colors.dim(`── ${name}`));
    output.line(text);
  }
  return exitCodes.ok.code;
}

const sizeOf = (text: string) => {
  const bytes = Buffer.byteLength(text);
  return { bytes, tokens: Math.ceil(bytes / bytesPerToken) };
};
const sized = (name: string, text: string) => ({ name, text, ...sizeOf(text) });

/** The workspace that a directory lies in. @throws CliError workspaceNotFound */
function enclosing(directory: string, home: string): string {
  const found = isWorkspace(directory, home) ? directory : workspaceAbove(directory, { home });
  if (found !== undefined) return found;
  throw new CliError('workspaceNotFound', `${directory} is in no workspace.`, 'Make one with: oratorio init');
}

function configOf({ home, env }: CommandContext, workspace: string) {
  try {
    return loadConfig({ home, workspace, env });
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    throw invalidConfig(error);
  }
}
