/** Harnesses of the lab: their configuration for an OpenAI-compatible endpoint, and their command for a task. */
import { execFileSync } from 'node:child_process';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { initWorkspace } from '../../src/config/index.ts';
import { type Package, packageDirectory } from './packages.ts';

/** One run: its directories and its endpoint. */
export interface Place {
  readonly workspace: string;
  /** HOME of the harness, new for each run. */
  readonly home: string;
  readonly endPoint: string;
  /** Environment of the harness and of everything that it starts. */
  readonly env: Readonly<Record<string, string>>;
}

export interface Harness {
  readonly name: string;
  readonly version: string;
  /** Writes configuration, untimed. @returns the command that does the task and ends; the prompt is its last argument */
  readonly prepare: (place: Place) => readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  /** Ends the processes that stay behind by design. */
  readonly end?: (place: Place) => void;
}

/** Name of the scripted model, or of the real one: the upstream puts in the requested one. */
const model = 'ideal';
const key = 'lab';
const root = join(import.meta.dirname, '..', '..');

function write(path: string, content: unknown): void {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, JSON.stringify(content));
}

const program = join(root, 'bin/oratorio.js');

const oratorio: Harness = {
  name: 'oratorio',
  version: (JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { version: string }).version,
  prepare({ home, endPoint, workspace, env }) {
    write(join(home, '.oratorio', 'config.json'), {
      Model: `lab/${model}`,
      Providers: { lab: { EndPoint: endPoint, ApiKey: key } },
    });
    initWorkspace(workspace, env);
    return [process.execPath, program, 'exec', '--yes'];
  },
  end({ env }) {
    execFileSync(process.execPath, [program, 'hub', 'stop'], { env, stdio: 'ignore' });
  },
};

const piPackage: Package = {
  name: '@earendil-works/pi-coding-agent',
  version: '1.5.2',
  digest: 'mUWI04rqF1Vd/m1q+Ps1XeWsTXEVvRUnsmRa83I3Dzua0Tx5bYS93imeqtIfrXf7PkkaR6ERz+AuQhIJlom5yA==',
};
const pi: Harness = {
  ...{ name: 'pi', version: piPackage.version },
  prepare({ home, endPoint }) {
    write(join(home, '.pi', 'agent', 'models.json'), {
      providers: { lab: { baseUrl: endPoint, api: 'openai-completions', apiKey: key, models: [{ id: model }] } },
    });
    const entry = join(packageDirectory(piPackage), 'dist', 'bundle', 'cli.js');
    return [process.execPath, entry, '-p', '--provider', 'lab', '--model', model];
  },
  env: { PI_OFFLINE: '1', PI_TELEMETRY: '0' },
};

const opencodePackage: Package = {
  name: 'opencode-linux-x64',
  version: '1.18.33',
  digest: 'q/t/3p2CTxOT9y2kvjesb/LZab2+1eqlhhWA02Be6mjTtmYtNBcBsrI5yDo4Fw7ZSPBW2oyMIGMNRqiKQjiAWw==',
};
const opencode: Harness = {
  ...{ name: 'opencode', version: opencodePackage.version },
  prepare({ home, endPoint }) {
    const provider = {
      npm: '@ai-sdk/openai-compatible',
      options: { baseURL: endPoint, apiKey: key },
      models: { [model]: { name: model, limit: { context: 200_000, output: 16_000 } } },
    };
    write(join(home, '.config', 'opencode', 'opencode.json'), {
      ...{ model: `lab/${model}`, small_model: `lab/${model}`, autoupdate: false, share: 'disabled' },
      provider: { lab: provider },
    });
    return [join(packageDirectory(opencodePackage), 'bin', 'opencode'), 'run', '--auto'];
  },
  env: { OPENCODE_DISABLE_MODELS_FETCH: '1' },
};

const qwenPackage: Package = {
  name: '@qwen-code/qwen-code',
  version: '0.24.4',
  digest: 'pmexy/Nj+BKd3Un1ogqGQE8V4GJn5B6N9PQOrU1GH+lMR29kn6Bgf6YdbZa8hNIoTmAKT1LTPK+P8TibZRPPVg==',
};
const qwen: Harness = {
  ...{ name: 'qwen-code', version: qwenPackage.version },
  prepare({ endPoint }) {
    const entry = join(packageDirectory(qwenPackage), 'cli-entry.js');
    const access = ['--auth-type', 'openai', '--openai-api-key', key, '--openai-base-url', endPoint];
    return [process.execPath, entry, '--yolo', ...access, '-m', model, '-p'];
  },
};

/** All of the lab; the first is ours. */
export const harnesses: readonly Harness[] = [oratorio, pi, opencode, qwen];
