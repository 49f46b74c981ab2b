import { defaults } from '../defaults.ts';
import { stackFiles } from '../layout.ts';
import { containerPaths as inside } from './container-paths.ts';
import { composed, hardened, healthcheck, type MountOptions, mount } from './service.ts';
import { environmentOf, overlayVariables, reference } from './variables.ts';

const about = `Webhook ingress of a review stack: a gateway that lets deliveries of GitHub through, and nothing else.
Check it with: docker compose -f ${stackFiles.compose} -f ${stackFiles.overlay} config -q`;

const gatewayName = 'webhook-gateway';

/**
 * `docker-compose.webhook.yml`: laid over the composition while the stack takes webhooks. The gateway shares a network with the
 * backend only: it cannot reach the agent server.
 */
export function overlayFile(options: MountOptions): string {
  return composed(about, {
    services: {
      backend: {
        // The gateway says which address a delivery comes from; without this all would count as one sender.
        environment: {
          ...environmentOf('backend', overlayVariables),
          Oratorio__Server__TrustedProxies__0: gatewayName,
        },
        networks: ['core', 'ingress'],
      },
      [gatewayName]: gateway(options),
    },
    networks: { ingress: {} },
    volumes: { 'gateway-data': {}, 'gateway-config': {} },
  });
}

function gateway(options: MountOptions) {
  return {
    image: reference('ORATORIO_GATEWAY_IMAGE'),
    command: ['caddy', 'run', '--config', inside.caddyfile, '--adapter', 'caddyfile'],
    // The image makes the gateway's volumes for root; of root's capabilities the gateway only has that for ports below 1024.
    user: '0:0',
    cap_add: ['NET_BIND_SERVICE'],
    depends_on: { backend: { condition: 'service_healthy' } },
    environment: { XDG_DATA_HOME: inside.caddyData, XDG_CONFIG_HOME: inside.caddyConfig },
    volumes: [
      mount(stackFiles.caddyfile, inside.caddyfile, { ...options, isReadOnly: true }),
      `gateway-data:${inside.caddyData}`,
      `gateway-config:${inside.caddyConfig}`,
    ],
    networks: ['ingress'],
    // Without an address: IPv4 and IPv6.
    ports: defaults.gatewayPorts.map((port) => `${port}:${port}`),
    // Whether anything listens on 443, asked of the kernel: images of Caddy have no program in common that could connect.
    healthcheck: healthcheck(['CMD-SHELL', "grep -qs ':01BB [0-9A-F]*:0000 0A' /proc/net/tcp /proc/net/tcp6"]),
    ...hardened({ memory: '512m', pids: 256 }),
  };
}
