import { ModelError } from '../agent/index.ts';
import { extraToolNames } from '../config/index.ts';
import { json, type Reply } from '../http/index.ts';
import type { ChatOptions } from './options.ts';

/**
 * `GET /v1/health` (specification §4.1; the fields are ours). Reports model and tools. A
 * misconfigured provider is reported with status 200, because the server itself is well.
 */
export function healthOf(options: ChatOptions): () => Promise<Reply> {
  const { runtime, api, version, mode, health } = options;
  const bornAt = performance.now();
  const extra: ReadonlySet<string> = new Set(extraToolNames);
  const enabled = new Set(api.EnabledTools.map((name) => name.toLowerCase()));

  async function provider() {
    try {
      const { model, provider, tools } = await runtime.describe();
      const names = tools.filter((name) => (enabled.size === 0 ? !extra.has(name) : enabled.has(name.toLowerCase())));
      return { model, provider, tools: { enabled: names.length, names } };
    } catch (error) {
      if (!(error instanceof ModelError)) throw error;
      return { model: null, provider: null, problem: { code: error.code, message: error.message } };
    }
  }

  return async () => {
    const facts = await provider();
    return json(200, {
      status: 'ok',
      version,
      mode,
      protocol: 'openai-compatible',
      ...facts,
      ...health?.(),
      activeTurns: runtime.turns.count,
      uptimeMs: Math.round(performance.now() - bornAt),
    });
  };
}
