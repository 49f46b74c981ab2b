import { defaults } from '../defaults.ts';
import { containerPaths } from './container-paths.ts';
import type { VariableName } from './variables.ts';

/** A value that the agent server takes from its environment when it reads its settings. */
const fromEnvironment = (name: VariableName): string => `\${${name}}`;

/**
 * Settings of the agent server, `agent/config.json`: written once, then the user's. They are the user's layer of its
 * container, not the workspace's, because the workspace holds repositories of others. No secret is in them: they are referred
 * to, and the composition hands them in.
 */
export function agentConfig(): string {
  const { agent, dashboard } = defaults.containerPorts;
  const settings = {
    EndPoint: fromEnvironment('ORATORIO_MODEL_ENDPOINT'),
    Model: fromEnvironment('ORATORIO_MODEL'),
    ApiKey: fromEnvironment('ORATORIO_MODEL_API_KEY'),
    AppServer: { WebSocket: { Host: '0.0.0.0', Port: agent, Token: fromEnvironment('ORATORIO_AGENT_TOKEN') } },
    DashBoard: {
      Enabled: true,
      Host: '0.0.0.0',
      Port: dashboard,
      Auth: 'token',
      Username: 'oratorio',
      Password: fromEnvironment('ORATORIO_DASHBOARD_PASSWORD'),
    },
    // No user is there to answer: calls that need an approval are declined.
    Permissions: { DefaultApprovalPolicy: 'interrupt', WorktreeRoot: containerPaths.worktrees },
  };
  return `${JSON.stringify(settings, null, 2)}\n`;
}
