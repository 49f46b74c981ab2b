import { join } from 'node:path';
import type { AnyActorRef } from 'xstate';
import {
  createBuiltinTools,
  type ModelProvider,
  openStore,
  providerSource,
  type RuntimeSettings,
  StorageError,
  type Store,
  type StoredThread,
  selectTools,
  ThreadService,
} from '../agent/index.ts';
import { type Config, directoryName, homeDirectory } from '../config/index.ts';
import { type Logger, Secrets } from '../log/index.ts';
import { McpServers } from '../mcp/index.ts';
import type { LaunchDocument, Turn } from '../protocol/index.ts';
import type { Observable } from './observatory.ts';
import { StartupError } from './startup-error.ts';

export interface AssemblyOptions {
  /** Canonical. */
  readonly workspacePath: string;
  readonly config: Config;
  readonly launch: LaunchDocument | undefined;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly logger: Logger;
  /** Another model provider than the configured one. */
  readonly provider: (() => Promise<ModelProvider>) | undefined;
  /** Sees the root actor of every turn and MCP server before it starts. */
  readonly observe: (actor: AnyActorRef, observable: Observable) => void;
  readonly onTurnEnd: (thread: StoredThread, turn: Turn) => void;
}

/** The runtime with everything in it, and what else has to be closed. */
export interface Assembly {
  readonly threads: ThreadService;
  readonly mcp: McpServers;
  readonly store: Store;
  /** Ends turns, tools and MCP servers; the database last. */
  close(): Promise<void>;
}

/**
 * Puts the runtime of one workspace together.
 *
 * @throws StartupError (config) when the database cannot be used
 */
export function assemble(options: AssemblyOptions): Assembly {
  const { workspacePath, config, env, logger, observe, onTurnEnd } = options;
  const secrets = secretsOf(options);
  const cleaner = new Secrets();
  for (const secret of secrets) cleaner.protect(secret);
  const onBug = (error: unknown) => logger.bug(error);
  const store = open(workspacePath, logger);
  const mcp = new McpServers({
    workspacePath,
    servers: config.McpServers,
    home: homeDirectory(env),
    env,
    logger,
    observe: (actor, name) => observe(actor, { id: `mcp/${name}`, machine: 'mcp-server', title: name }),
  });
  const builtin = createBuiltinTools({
    tools: config.Tools,
    blockedPaths: config.Permissions.BlockedPaths,
    passEnvironment: config.Supervision.PassEnvironment,
    secrets,
    environment: env,
    home: homeDirectory(env),
  });
  const enabled = selectTools(builtin, config.EnabledTools);
  const provider = options.provider ?? configuredProvider(options);
  const threads = new ThreadService({
    workspacePath,
    store: store.threads,
    traces: store.traces,
    provider,
    tools: () => [...enabled, ...mcp.tools()],
    settings: settingsOf(config),
    clean: (text) => cleaner.clean(text),
    onBug,
    observe(actor, threadId, turnId) {
      observe(actor, { id: `${threadId}/${turnId}`, machine: 'turn', title: `${turnId} of ${threadId}` });
    },
    onTurnEnd,
  });
  mcp.onStatus((server) => threads.feed.broadcast({ method: 'mcp/status/updated', params: { server } }));
  mcp.start();
  return {
    threads,
    mcp,
    store,
    async close() {
      await threads.close();
      await mcp.close();
      store.close();
    },
  };
}

function open(workspacePath: string, logger: Logger): Store {
  try {
    return openStore(join(workspacePath, directoryName), { onFault: (error) => logger.bug(error) });
  } catch (error) {
    if (error instanceof StorageError) throw new StartupError('config', error.message, { cause: error });
    throw error;
  }
}

function configuredProvider({ config, launch }: AssemblyOptions): () => Promise<ModelProvider> {
  // A sidecar takes the place of the configured upstream.
  const { endpoint: endPoint, apiKey } = launch?.upstream ?? { endpoint: config.EndPoint, apiKey: config.ApiKey };
  return providerSource({
    endPoint,
    apiKey,
    model: config.Model,
    streamUpstream: config.StreamUpstream,
    idleMs: config.UpstreamIdleMs,
    retries: config.UpstreamRetries,
  });
}

/** What no tool, trace or prompt may hold. */
function secretsOf({ config, launch }: AssemblyOptions): string[] {
  return [
    config.ApiKey,
    config.Api.ApiKey,
    config.AgUi.ApiKey,
    config.AppServer.WebSocket.Token,
    config.Tools.Web.SearchApiKey,
    launch?.notificationToken ?? '',
    launch?.adoptionProof ?? '',
    launch?.upstream?.apiKey ?? '',
    launch?.services.appServerWebSocket.token ?? '',
  ].filter((secret) => secret !== '');
}

function settingsOf(config: Config): RuntimeSettings {
  const { Compaction, SubAgent, Permissions } = config;
  return {
    systemPrompt: config.SystemPrompt,
    maxToolCallRounds: config.MaxToolCallRounds,
    maxSessionQueueSize: config.MaxSessionQueueSize,
    compaction: {
      isAutomatic: Compaction.AutoCompactEnabled,
      contextWindow: Compaction.ContextWindow,
      reserveTokens: Compaction.ReserveTokens,
      keepRecentTurns: Compaction.KeepRecentTurns,
    },
    subAgent: {
      maxDepth: SubAgent.MaxDepth,
      maxConcurrency: SubAgent.MaxConcurrency,
      maxToolCallRounds: SubAgent.MaxToolCallRounds,
      model: SubAgent.Model,
    },
    approvalPolicy: Permissions.DefaultApprovalPolicy,
    approvalTimeoutMs: Permissions.ApprovalTimeoutSeconds * 1_000,
  };
}
