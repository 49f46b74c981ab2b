import { type Answered, type Asked, ok, type Route } from '../asked.ts';
import { issueToken, permits, Refusal } from '../auth.ts';
import * as render from '../render.ts';

function createToken({ forge, params, body }: Asked): Answered {
  const installation = forge.installations.get(Number(params['installation_id']));
  if (!installation) throw new Refusal(404, 'Not Found');
  if (installation.isSuspended) throw new Refusal(403, 'This installation has been suspended');
  const permissions = (body['permissions'] ?? installation.permissions) as Record<string, string>;
  if (Object.entries(permissions).some(([name, level]) => !permits(installation.permissions[name], level))) {
    throw new Refusal(422, 'The permissions requested are not granted to this installation.');
  }
  const names = body['repositories'] as string[] | undefined;
  const found = names?.map((name) => forge.repository(installation.owner, name));
  if (found?.some((each) => each?.installationId !== installation.id)) {
    throw new Refusal(
      422,
      'There is at least one repository that does not exist or is not accessible to the parent installation.',
    );
  }
  const repositories = found?.flatMap((each) => (each ? [each.id] : []));
  const { value, expiresAt } = issueToken(forge, { installationId: installation.id, repositories, permissions });
  return ok(
    {
      token: value,
      expires_at: new Date(expiresAt).toISOString(),
      permissions,
      repository_selection: repositories ? 'selected' : 'all',
    },
    201,
  );
}

function repositoryInstallation({ forge, params }: Asked): Answered {
  const repo = forge.repository(params['owner'] ?? '', params['repo'] ?? '');
  if (!repo || !forge.installations.has(repo.installationId)) throw new Refusal(404, 'Not Found');
  return ok(render.installation(forge, repo.installationId));
}

const hookConfig = ({ forge: { app } }: Asked): Answered =>
  ok({
    url: app.hook.url || 'https://example.test/',
    content_type: app.hook.contentType,
    insecure_ssl: '0',
    ...(app.hook.secret && { secret: '********' }),
  });

async function redeliver({ forge, params }: Asked): Promise<Answered> {
  const delivery = forge.deliveries.find(({ id }) => String(id) === params['delivery_id']);
  if (!delivery) throw new Refusal(422, 'Validation Failed');
  await forge.deliver(delivery.event, delivery.payload, { guid: delivery.guid, redelivery: true });
  return ok({}, 202);
}

/** GitHub lists them newest first and pages by cursor. */
function listDeliveries({ forge, query }: Asked): Answered {
  const all = [...forge.deliveries].reverse();
  const from = Number(query.get('cursor') ?? 0);
  const size = Number(query.get('per_page') ?? 30);
  const next = new URLSearchParams({ per_page: String(size), cursor: String(from + size) });
  const link = `<${forge.apiUrl}/app/hook/deliveries?${next}>; rel="next"`;
  return {
    status: 200,
    body: all.slice(from, from + size).map(render.delivery),
    ...(all.length > from + size && { headers: { link } }),
  };
}

const asApp = { needs: 'app' } as const;

/** Routes that the App calls with its own JWT. */
export const appRoutes: readonly Route[] = [
  { ...asApp, method: 'GET', path: '/app', handle: ({ forge }) => ok(render.app(forge)) },
  {
    ...asApp,
    method: 'GET',
    path: '/app/installations',
    handle: ({ forge }) => ok([...forge.installations.keys()].map((id) => render.installation(forge, id))),
  },
  { ...asApp, method: 'POST', path: '/app/installations/{installation_id}/access_tokens', handle: createToken },
  { ...asApp, method: 'GET', path: '/app/hook/config', handle: hookConfig },
  { ...asApp, method: 'GET', path: '/app/hook/deliveries', handle: listDeliveries },
  { ...asApp, method: 'POST', path: '/app/hook/deliveries/{delivery_id}/attempts', handle: redeliver },
  { ...asApp, method: 'GET', path: '/repos/{owner}/{repo}/installation', handle: repositoryInstallation },
];
