import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Runtime } from '../agent/index.ts';
import { version } from '../protocol/index.ts';
import { renderMetrics, type ServerStats } from '../telemetry/index.ts';
import type { Assembly } from './assembly.ts';
import { Connection, type ConnectionOptions } from './connection.ts';

/** Answer of `GET /healthz`. */
export interface Health {
  readonly status: 'ok' | 'lockLost';
  readonly incarnation: string;
  readonly uptimeMs: number;
  readonly idleMs: number;
  readonly connections: number;
  readonly activeTurns: number;
  readonly eventLoopLagMs: number;
  /** The program of this process, or its workspace, was replaced, and a restart ends no work. */
  readonly isRestartDue: boolean;
}

export interface HealthOptions {
  readonly incarnation: string;
  readonly runtime: Runtime;
  /** Facts about the connections of clients; this request does not count as use. */
  readonly connection: Omit<ConnectionOptions, 'wire'>;
  readonly idleMs: () => number;
  readonly connections: () => number;
  readonly isLockIntact: () => boolean;
  readonly isRestartDue: () => boolean;
}

/**
 * Checks the server as a client: a connection of its own introduces itself and requests a thread that does not
 * exist. Without an answer the prober gets none either, and its deadline reports the failure.
 */
export async function examine(options: HealthOptions): Promise<Health> {
  const { incarnation, runtime, idleMs, connections, isLockIntact, isRestartDue } = options;
  await askItself(options.connection);
  const before = performance.now();
  await nextTurn();
  const eventLoopLagMs = performance.now() - before;
  return {
    status: isLockIntact() ? 'ok' : 'lockLost',
    incarnation,
    uptimeMs: Math.round(process.uptime() * 1000),
    idleMs: Math.round(idleMs()),
    connections: connections(),
    activeTurns: runtime.turns.count,
    isRestartDue: isRestartDue(),
    eventLoopLagMs: Math.round(eventLoopLagMs * 100) / 100,
  };
}

const introduction = JSON.stringify({
  jsonrpc: '2.0',
  id: 0,
  method: 'initialize',
  params: { clientInfo: { name: 'health', version: '1' } },
});
const question = JSON.stringify({
  jsonrpc: '2.0',
  id: 1,
  method: 'turn/interrupt',
  params: { threadId: 'health', turnId: 'health' },
});

/** Resolves when the second of two requests has been answered, be it with an error. */
function askItself(options: HealthOptions['connection']): Promise<void> {
  return new Promise((resolve) => {
    const { methods, feed, respond, onBug } = options;
    const connection = new Connection({
      methods,
      feed,
      respond,
      onBug,
      wire: {
        send(frame) {
          if (!frame.includes('"id":1,')) return;
          connection.close();
          resolve();
        },
      },
    });
    connection.receive(introduction);
    connection.receive(question);
  });
}

/** The text of `GET /metrics`. @param servers open connections of each listener of this process */
export async function metricsText(
  { runtime, traces, mcp, automations, telemetry }: Assembly,
  servers: readonly ServerStats[],
): Promise<string> {
  const { countsByState } = await automations.state();
  const { text } = await renderMetrics({
    version,
    telemetry,
    runtime,
    traces,
    mcpByState: mcp.describe().byState,
    automationsByState: countsByState,
    servers,
  });
  return text;
}
