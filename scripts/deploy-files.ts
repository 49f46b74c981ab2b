/** The files of a manual setup of the review stack (specification §4.4 rule 10), made by the code of `oratorio server`. */
import {
  agentConfig,
  composeFile,
  envExample,
  gatewayText,
  newBackendConfig,
  overlayFile,
} from '../src/deploy/files/index.ts';

/** The operator replaces these. */
const example = {
  host: 'reviews.example.com',
  repository: 'owner/name',
  workspacePath: '/workspace/owner__name',
  appId: '12345',
};

const aboutGateway = `# Gateway of the webhook: write the DNS name of your server in place of ${example.host}, everywhere in this file.
# For a public IP address use: oratorio server webhook enable
`;

/** Path and text of each committed file below `deploy/`. */
export function deployFiles(): readonly (readonly [path: string, text: string])[] {
  const { host, appId, repository, workspacePath } = example;
  const publicHost = { kind: 'dns', name: host, display: host, origin: `https://${host}` } as const;
  const repositories = [{ repository, workspacePath, autoReview: true }];
  return [
    ['deploy/docker-compose.yml', composeFile({ isSelinux: false })],
    ['deploy/docker-compose.webhook.yml', overlayFile({ isSelinux: false })],
    ['deploy/Caddyfile', aboutGateway + gatewayText({ host: publicHost, acmeEmail: null, certificates: 'production' })],
    ['deploy/.env.example', envExample()],
    ['deploy/oratorio.config.json.example', newBackendConfig({ appId, writesEnabled: false, repositories })],
    ['deploy/agent.config.json.example', agentConfig()],
  ];
}
