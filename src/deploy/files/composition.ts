import { defaults } from '../defaults.ts';
import { stackFiles } from '../layout.ts';
import { containerPaths as inside } from './container-paths.ts';
import { composed, hardened, healthcheckByGet, type MountOptions, mount } from './service.ts';
import { environmentOf, reference, type VariableName, variables } from './variables.ts';

const { containerPorts: ports } = defaults;

const about = `Review stack of Oratorio: the review backend and its agent server. Everything that differs between stacks is in .env.
Check it with: docker compose config -q`;

const ownUser = `${reference('ORATORIO_UID')}:${reference('ORATORIO_GID')}`;

/** Only this host reaches it: a port that Docker publishes is behind no firewall of the host. */
const onLoopback = (name: VariableName, port: number): string => `${publishedAs(name)}:${port}`;

/** Address of the host under which a service proves itself: its own port in the container is another one. */
const publishedAs = (name: VariableName): string => `127.0.0.1:${reference(name)}`;

/**
 * `docker-compose.yml` (specification §2.9), marked as ours. The same text for every stack.
 */
export function composeFile(options: MountOptions): string {
  return composed(about, {
    services: { agent: agent(options), backend: backend(options) },
    networks: { core: {} },
    volumes: { 'agent-data': {}, 'backend-data': {} },
  });
}

function agent(options: MountOptions) {
  return {
    image: reference('ORATORIO_IMAGE'),
    command: ['app-server', '--workspace', inside.workspace],
    user: ownUser,
    environment: {
      HOME: inside.data,
      ORATORIO_HOME: inside.agentHome,
      ORATORIO_PUBLISHED_AS: publishedAs('ORATORIO_DASHBOARD_PORT'),
      ...environmentOf('agent', variables),
    },
    volumes: [
      mount(stackFiles.workspace, inside.workspace, options),
      `agent-data:${inside.data}`,
      mount(stackFiles.agentHome, inside.agentHome, options),
      mount(stackFiles.agentConfig, inside.agentConfig, { ...options, isReadOnly: true }),
    ],
    networks: ['core'],
    ports: [onLoopback('ORATORIO_AGENT_PORT', ports.agent), onLoopback('ORATORIO_DASHBOARD_PORT', ports.dashboard)],
    healthcheck: healthcheckByGet({ port: ports.agent, path: '/healthz' }),
    ...hardened({ memory: reference('ORATORIO_AGENT_MEMORY'), pids: 1024 }),
  };
}

function backend(options: MountOptions) {
  return {
    image: reference('ORATORIO_IMAGE'),
    command: ['backend'],
    user: ownUser,
    depends_on: { agent: { condition: 'service_healthy' } },
    environment: {
      HOME: inside.data,
      ORATORIO_STATE_ROOT: inside.backendState,
      ORATORIO_PUBLISHED_AS: publishedAs('ORATORIO_BACKEND_PORT'),
      ORATORIO_CONFIG_PATH: inside.config,
      Oratorio__Server__Host: '0.0.0.0',
      Oratorio__Server__Port: String(ports.backend),
      // A client behind a tunnel looks like this host: only this keeps settings from being changed from afar (specification §4.4 rule 9).
      Oratorio__Settings__Writable: 'false',
      Oratorio__AgentServer__AppServerUrl: `ws://agent:${ports.agent}/ws`,
      Oratorio__AgentServer__HubDiscoveryEnabled: 'false',
      Oratorio__AgentServer__WorktreeRoot: inside.worktrees,
      ...environmentOf('backend', variables),
    },
    volumes: [
      mount(stackFiles.workspace, inside.workspace, options),
      mount(stackFiles.config, inside.config, { ...options, isReadOnly: true }),
      mount(stackFiles.secrets, inside.secrets, { ...options, isReadOnly: true }),
      `backend-data:${inside.data}`,
    ],
    networks: ['core'],
    ports: [onLoopback('ORATORIO_BACKEND_PORT', ports.backend)],
    healthcheck: healthcheckByGet({ port: ports.backend, path: '/health' }),
    ...hardened({ memory: reference('ORATORIO_BACKEND_MEMORY'), pids: 512 }),
  };
}
