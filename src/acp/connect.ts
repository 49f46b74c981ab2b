import { AppServerClient, AppServerConnectionError, connectHub, HubUnavailableError } from '../client/index.ts';
import { loadConfig, restrictionWarning } from '../config/index.ts';
import { version } from '../protocol/index.ts';
import type { Connect } from './servers.ts';

export interface HubConnectOptions {
  /** User home, absolute. */
  readonly home: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Start a Hub when none is running. */
  readonly autoStart: boolean;
  /** Receives notices for the user, e.g. that settings of a restricted workspace are ignored. */
  readonly onWarning: (warning: string) => void;
}

/** Connects through the Hub of the user, as every client does (specification §4.2 rule 3). */
export function throughHub({ home, env, autoStart, onWarning }: HubConnectOptions): Connect {
  const clientInfo = { name: 'oratorio-acp', title: 'Oratorio for editors', version };
  return async ({ workspacePath, onRequest, signal }) => {
    const { hub } = await connectHub({ home, autoStart, signal });
    const request = { workspacePath, client: { name: clientInfo.name, version } };
    const record = await hub.ensure(request, { signal }).catch((error: unknown) => {
      if (!(error instanceof HubUnavailableError)) throw error;
      const message = `The Hub ended before the agent server of ${workspacePath} was ready.`;
      throw new AppServerConnectionError(message, { cause: error });
    });
    const url = record.endpoints['appServerWebSocket'];
    if (url === undefined) {
      throw new AppServerConnectionError(`The agent server of ${workspacePath} offers no WebSocket.`);
    }
    const { config } = await loadConfig({ home, workspace: workspacePath, env });
    if (record.restrictedSettings.length > 0) {
      onWarning(restrictionWarning(record.canonicalWorkspacePath, record.restrictedSettings));
    }
    const client = await AppServerClient.connect(url, { clientInfo, onRequest, signal });
    return { client, approvalPolicy: config.Permissions.DefaultApprovalPolicy };
  };
}
