import { closeSync, openSync, readSync, realpathSync } from 'node:fs';
import { join } from 'node:path';
import { findProgram } from '../lib/index.ts';
import { agentPresets, type PresetName, presetNames } from '../protocol/index.ts';
import type { HostedModels } from './hosted-models.ts';

export { type PresetName, presetNames };

/** Facts about an agent; found by running it. */
export interface Preset {
  /** npm package that holds the program. */
  readonly package: string;
  /** Tested version. */
  readonly tested: string;
  readonly program: string;
  readonly args: readonly string[];
  /** Variables that make the agent ask before it acts, and keep it quiet. */
  readonly env: Readonly<Record<string, string>>;
  /** Modes in which the agent asks before it acts; absent: it never asks. */
  readonly askingModes?: readonly string[];
  /** Variables of the user that the agent may need: keys and its own directories. */
  readonly passes: readonly string[];
  /** Command line of the process that does the work, when we start another one. */
  readonly worker?: RegExp;
  /** Completes "log in: …". */
  readonly login: string;
  /** Whether the agent works with our MCP servers. */
  readonly takesMcpServers: boolean;
  /** Models that the agent must not choose automatically. */
  readonly hosted?: HostedModels;
}

export const presets: Readonly<Record<PresetName, Preset>> = {
  codex: {
    package: '@agentclientprotocol/codex-acp',
    tested: '2.6.0',
    program: agentPresets.codex.program,
    args: [],
    // In Codex's default mode a model judges in place of a person.
    env: { INITIAL_AGENT_MODE: 'workspace-write', NO_BROWSER: '1' },
    askingModes: ['workspace-write', 'read-only'],
    passes: ['CODEX_HOME', 'CODEX_API_KEY', 'CODEX_PATH', 'OPENAI_API_KEY', 'OPENAI_BASE_URL'],
    worker: /codex.*app-server/,
    login: 'codex login',
    takesMcpServers: true,
  },
  claude: {
    package: '@agentclientprotocol/claude-agent-acp',
    tested: '0.100.0',
    program: agentPresets.claude.program,
    args: [],
    env: {
      DISABLE_AUTOUPDATER: '1',
      CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1',
      CLAUDE_CODE_ENABLE_PROMPT_SUGGESTION: 'false',
    },
    askingModes: ['default', 'plan'],
    passes: ['CLAUDE_CONFIG_DIR', 'ANTHROPIC_API_KEY', 'ANTHROPIC_BASE_URL', 'ANTHROPIC_AUTH_TOKEN'],
    worker: /claude.*stream-json/,
    login: 'claude-agent-acp --cli auth login, or set ANTHROPIC_API_KEY',
    takesMcpServers: true,
  },
  gemini: {
    package: '@google/gemini-cli',
    tested: '0.61.0',
    program: agentPresets.gemini.program,
    args: ['--acp'],
    // Saves a process: a signal then reaches the one that works.
    env: { GEMINI_CLI_NO_RELAUNCH: '1' },
    askingModes: ['default', 'plan'],
    passes: ['GEMINI_API_KEY', 'GOOGLE_API_KEY', 'GOOGLE_GEMINI_BASE_URL', 'GOOGLE_CLOUD_PROJECT'],
    login: 'run gemini once, or set GEMINI_API_KEY',
    takesMcpServers: true,
  },
  opencode: {
    package: 'opencode-ai',
    tested: '1.18.33',
    program: agentPresets.opencode.program,
    args: ['acp'],
    env: {
      OPENCODE_PERMISSION: '{"bash":"ask","edit":"ask","webfetch":"ask"}',
      OPENCODE_DISABLE_AUTOUPDATE: '1',
    },
    askingModes: ['build', 'plan'],
    passes: ['OPENAI_API_KEY', 'ANTHROPIC_API_KEY', 'OPENCODE_API_KEY', 'OPENCODE_CONFIG', 'OPENCODE_CONFIG_CONTENT'],
    login: 'opencode auth login',
    takesMcpServers: true,
    hosted: {
      prefix: 'opencode/',
      key: 'OPENCODE_API_KEY',
      login: { file: join('opencode', 'auth.json'), provider: 'opencode' },
    },
  },
  qwen: {
    package: '@qwen-code/qwen-code',
    tested: '0.24.4',
    program: agentPresets.qwen.program,
    args: ['--acp', '--approval-mode', 'default'],
    env: {},
    askingModes: ['default', 'plan'],
    passes: ['OPENAI_API_KEY', 'OPENAI_BASE_URL', 'OPENAI_MODEL', 'QWEN_API_KEY'],
    login: 'run qwen once, or set OPENAI_API_KEY and OPENAI_BASE_URL',
    takesMcpServers: true,
  },
  goose: {
    package: '@aaif/goose-acp',
    tested: '1.50.0',
    program: agentPresets.goose.program,
    args: ['acp'],
    env: { GOOSE_MODE: 'approve' },
    askingModes: ['approve', 'chat'],
    passes: ['GOOSE_PROVIDER', 'GOOSE_MODEL', 'OPENAI_API_KEY', 'OPENAI_HOST', 'ANTHROPIC_API_KEY'],
    login: 'goose configure',
    takesMcpServers: true,
  },
  pi: {
    package: 'pi-acp',
    tested: '0.0.34',
    program: agentPresets.pi.program,
    args: [],
    env: {},
    passes: ['OPENAI_API_KEY', 'ANTHROPIC_API_KEY', 'PI_CODING_AGENT_DIR'],
    worker: /(^|\/)pi( |$)|pi-coding-agent/,
    login: 'pi-acp --terminal-login',
    takesMcpServers: false,
  },
};

/** The preset of a name; undefined: the name has no preset. */
export const presetFor = (name: string): Preset | undefined =>
  presets[presetNames.find((known) => known === name) as PresetName];

export const installHintOf = (preset: Preset): string => `Install it with: npm install -g ${preset.package}`;

/**
 * Finds a program in a search path. A script for Node is started with the Node of this process: that of the user may be too old,
 * and a wrapper would outlive its agent.
 *
 * @returns the command without the agent's arguments; undefined: there is no such program
 */
export function findAgentCommand(name: string, searchPath: string): readonly string[] | undefined {
  const found = findProgram(name, searchPath, []);
  if (found === undefined) return undefined;
  const file = realpathSync(found);
  return isNodeScript(file) ? [process.execPath, file] : [found];
}

const shebangBytes = 100;

function isNodeScript(file: string): boolean {
  if (/\.[cm]?js$/.test(file)) return true;
  const buffer = Buffer.alloc(shebangBytes);
  const descriptor = openSync(file, 'r');
  try {
    const text = buffer.toString('latin1', 0, readSync(descriptor, buffer, 0, shebangBytes, 0));
    return /^#!.*\bnode\b/.test(text.split('\n', 1)[0] ?? '');
  } finally {
    closeSync(descriptor);
  }
}
