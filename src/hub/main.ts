import { fileURLToPath } from 'node:url';
import { ConfigError, loadConfig } from '../config/index.ts';
import type { Logger } from '../log/index.ts';
import { version } from '../protocol/index.ts';
import type { HubOptions } from './claimed-hub.ts';
import { type Hub, type HubOutcome, startHub } from './hub.ts';

export interface RunHubOptions {
  readonly home: string;
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly logger: Logger;
  /** Another agent server than the one of this build, for programs that embed the Hub. */
  readonly agentServer?: HubOptions['agentServer'];
  /** Other deadlines and limits than the configuration and our defaults, for the same. */
  readonly policy?: HubOptions['policy'];
  /** Called once, when requests are answered. */
  readonly onServing?: (apiBaseUrl: string) => void;
}

/** Command line of the agent server that belongs to this build: sources beside sources, bundle beside bundle. */
function ownAgentServer() {
  const extension = import.meta.url.endsWith('.ts') ? 'ts' : 'cjs';
  const entry = fileURLToPath(new URL(`../appserver/main.${extension}`, import.meta.url));
  return { command: process.execPath, args: ['--disable-warning=ExperimentalWarning', entry] };
}

const ignore = () => undefined;

/** Handles SIGTERM, SIGINT and SIGHUP, which a closing terminal sends, like `POST /v1/shutdown` (design §5). The handlers are removed when the Hub has ended. */
function obeySignals(hub: Hub): () => void {
  const stop = () => hub.shutdown('stop');
  const signals = ['SIGTERM', 'SIGINT', 'SIGHUP'] as const;
  for (const signal of signals) process.on(signal, stop);
  // A write beyond the limit on the size of files then fails with an error, as on a full disk.
  process.on('SIGXFSZ', ignore);
  return () => {
    for (const signal of signals) process.off(signal, stop);
    process.off('SIGXFSZ', ignore);
  };
}

/**
 * Runs the Hub in this process until it has ended, by request, by signal, or because another one serves this home.
 * A failure, such as an invalid configuration, is in the outcome.
 */
export async function runHub(options: RunHubOptions): Promise<HubOutcome> {
  const { home, environment, logger, agentServer = ownAgentServer(), policy = {}, onServing } = options;
  try {
    const { config, warnings } = loadConfig({ home, env: environment });
    for (const warning of warnings) logger.warn(warning);
    const hub = startHub({ home, version, config, environment, agentServer, policy, logger });
    const stopListening = obeySignals(hub);
    const serving = await hub.serving;
    if ('apiBaseUrl' in serving) onServing?.(serving.apiBaseUrl);
    const outcome = await hub.outcome;
    stopListening();
    return outcome;
  } catch (error) {
    if (error instanceof ConfigError) return { kind: 'failed', error: error.message };
    throw error;
  }
}
