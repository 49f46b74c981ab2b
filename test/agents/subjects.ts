/** The agents that are tested with their packages, and how each is pointed at the scripted model. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type PresetName, presets } from '../../src/external/index.ts';

export interface Subject {
  readonly name: PresetName;
  /** Packages beside that of the preset. */
  readonly also: readonly string[];
  /** Command line of the process below the agent's own that does the work. */
  readonly worker: RegExp | undefined;
  /** Writes its configuration below `home`. @returns variables for it */
  readonly configure: (home: string, modelUrl: string) => Readonly<Record<string, string>>;
}

/** Packages with their versions, as npm names them. */
export const packagesOf = ({ name, also }: Subject): readonly string[] => [
  `${presets[name].package}@${presets[name].tested}`,
  ...also,
];

function write(home: string, path: string, text: string): void {
  const file = join(home, path);
  mkdirSync(join(file, '..'), { recursive: true });
  writeFileSync(file, text);
}

export const subjects: readonly Subject[] = [
  {
    name: 'codex',
    also: [],
    worker: presets.codex.worker,
    configure(home, url) {
      write(
        home,
        '.codex/config.toml',
        [
          'model = "scripted"',
          'model_provider = "scripted"',
          '[model_providers.scripted]',
          'name = "Scripted"',
          `base_url = "${url}"`,
          'env_key = "SCRIPTED_KEY"',
          'wire_api = "responses"',
          // Without this feature, Codex offers the tool only in its plan mode.
          '[features]',
          'default_mode_request_user_input = true',
          '',
        ].join('\n'),
      );
      return { CODEX_HOME: join(home, '.codex'), SCRIPTED_KEY: 'a-key-of-the-test' };
    },
  },
  {
    name: 'claude',
    also: [],
    worker: presets.claude.worker,
    configure: (home, url) => ({
      CLAUDE_CONFIG_DIR: join(home, '.claude'),
      ANTHROPIC_BASE_URL: new URL(url).origin,
      ANTHROPIC_API_KEY: 'a-key-of-the-test',
    }),
  },
  {
    name: 'gemini',
    also: [],
    worker: presets.gemini.worker,
    configure(home, url) {
      // MCP servers are started in folders only that its user trusts.
      const security = { auth: { selectedType: 'gemini-api-key' }, folderTrust: { enabled: false } };
      const settings = { security, model: { name: 'scripted' } };
      write(home, '.gemini/settings.json', JSON.stringify(settings));
      return { GEMINI_API_KEY: 'a-key-of-the-test', GOOGLE_GEMINI_BASE_URL: new URL(url).origin };
    },
  },
  {
    name: 'goose',
    also: [],
    worker: presets.goose.worker,
    configure: (_home, url) => ({
      GOOSE_PROVIDER: 'openai',
      GOOSE_MODEL: 'scripted',
      GOOSE_DISABLE_KEYRING: '1',
      OPENAI_HOST: new URL(url).origin,
      OPENAI_API_KEY: 'a-key-of-the-test',
    }),
  },
  {
    name: 'opencode',
    also: [],
    worker: undefined,
    configure(home, url) {
      const models = { scripted: { name: 'Scripted', tool_call: true } };
      const scripted = {
        npm: '@ai-sdk/openai-compatible',
        name: 'Scripted',
        options: { baseURL: url, apiKey: 'a-key-of-the-test' },
        models,
      };
      const config = {
        model: 'scripted/scripted',
        small_model: 'scripted/scripted',
        provider: { scripted },
        share: 'disabled',
      };
      write(home, '.config/opencode/opencode.json', JSON.stringify(config));
      return {};
    },
  },
  {
    name: 'qwen',
    also: [],
    worker: /qwen/,
    configure(home, url) {
      write(home, '.qwen/settings.json', JSON.stringify({ security: { auth: { selectedType: 'openai' } } }));
      return { OPENAI_API_KEY: 'a-key-of-the-test', OPENAI_BASE_URL: url, OPENAI_MODEL: 'scripted' };
    },
  },
  {
    name: 'pi',
    also: ['@earendil-works/pi-coding-agent@0.87.1'],
    worker: presets.pi.worker,
    configure(home, url) {
      const models = [{ id: 'scripted', name: 'Scripted', input: ['text'], contextWindow: 100_000, maxTokens: 4_096 }];
      const provider = { baseUrl: url, api: 'openai-completions', apiKey: 'a-key-of-the-test', models };
      write(home, '.pi/agent/models.json', JSON.stringify({ providers: { scripted: provider } }));
      write(home, '.pi/agent/settings.json', JSON.stringify({ defaultProvider: 'scripted', defaultModel: 'scripted' }));
      return {};
    },
  },
];
