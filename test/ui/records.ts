/** Records of agent servers as the Hub lists them. */
import type { AppServerRecord } from '../../src/protocol/index.ts';
import { ago, minute } from './stories.ts';

/** A running server without trouble, but for `more`. */
export function recordOf(path: string, more: Partial<AppServerRecord> = {}): AppServerRecord {
  return {
    ...{ health: 'healthy', problems: [], lastTurn: null, failuresInARow: 0 },
    ...{
      model: null,
      pendingApprovals: 0,
      turnsResumed: 0,
      costUsd: null,
      sandbox: null,
      configChanged: false,
      incident: null,
    },
    ...{ workspacePath: path, canonicalWorkspacePath: path, state: 'running', pid: 4242 },
    endpoints: { appServerWebSocket: 'ws://127.0.0.1:1/?token=secret-of-it' },
    serviceStatus: {
      appServerWebSocket: { state: 'running', url: 'ws://127.0.0.1:1/?token=secret-of-it', reason: null },
      dashboard: { state: 'disabled', url: null, reason: 'Switched off in the settings.' },
    },
    ...{ serverVersion: '0.1.0', startedByHub: true, exitCode: null, lastError: null, recentStderr: null },
    ...{ displayName: path.split('/').at(-1) ?? '', phase: 'running', adopted: false, incarnation: 1, restartCount: 0 },
    ...{ nextAttemptAt: null, lastStartedAt: new Date(ago(minute)).toISOString(), lastExitedAt: null },
    ...{ trust: 'trusted', restrictedSettings: [], page: null },
    ...{ health: 'unknown', problems: [], lastTurn: null, failuresInARow: 0, model: null, agent: null },
    ...{ pendingApprovals: 0, turnsResumed: 0, costUsd: null, sandbox: null, configChanged: false, incident: null },
    ...more,
  };
}
