import { Validator } from '@seriousme/openapi-schema-validator';
import t from 'tap';
import * as v from 'valibot';
import { hubOpenApi } from '../../src/hub/openapi.ts';
import {
  errorCodesOf,
  type HubRoute,
  hubRequestSchemas,
  hubResponseSchemas,
  hubRoutes,
} from '../../src/hub/route-table.ts';
import { hubErrors, hubEventKinds, proofPaths } from '../../src/protocol/index.ts';

const document = JSON.parse(JSON.stringify(hubOpenApi('1.2.3', 'http://127.0.0.1:4000')));
const routes: [string, HubRoute][] = Object.entries(hubRoutes);

function operationOf(route: HubRoute) {
  return document.paths[route.path][route.method.toLowerCase()];
}

/** All strings under any `$ref` key, wherever they are. */
function referencesIn(value: unknown): string[] {
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([key, inner]) =>
    key === '$ref' && typeof inner === 'string' ? [inner] : referencesIn(inner),
  );
}

t.test('the document is valid OpenAPI 3.1 for an independent validator', async (t) => {
  const { valid, errors } = await new Validator().validate(document);
  t.equal(valid, true, JSON.stringify(errors));
  t.equal(document.openapi.slice(0, 3), '3.1');
  t.equal(document.info.version, '1.2.3');
  t.same(document.servers, [{ url: 'http://127.0.0.1:4000' }]);
});

t.test('every reference resolves, and every component is used', async (t) => {
  const components = Object.keys(document.components.schemas).map((name) => `#/components/schemas/${name}`);
  const references = new Set(referencesIn(document));
  for (const reference of references) t.ok(components.includes(reference), reference);
  for (const component of components) t.ok(references.has(component), `${component} is used`);
});

t.test('specification §4.2: every endpoint of the specification is documented with its method', async (t) => {
  const specified = [
    'GET /v1/status',
    'POST /v1/shutdown',
    'POST /v1/appservers/ensure',
    'GET /v1/appservers',
    'GET /v1/appservers/by-workspace',
    'POST /v1/appservers/stop',
    'POST /v1/appservers/restart',
    'GET /v1/events',
    'POST /v1/notifications/request',
  ];
  const served = routes.map(([, { method, path }]) => `${method} ${path}`);
  for (const endpoint of specified) t.ok(served.includes(endpoint), endpoint);
  t.equal(new Set(served).size, served.length, 'no endpoint is declared twice');
});

t.test('specification §5: all but GET /v1/status and the proof before a token need the bearer token', async (t) => {
  for (const [name, route] of routes) {
    const open = route.path === '/v1/status' || route.path === proofPaths.hub;
    t.same(operationOf(route).security, open ? [] : [{ hubToken: [] }], name);
    t.equal(
      '401' in operationOf(route).responses,
      route.errors.includes('unauthorized') || !open,
      `${name} says what happens without it`,
    );
  }
  t.equal(document.components.securitySchemes.hubToken.scheme, 'bearer');
});

t.test('specification §7.1: every error has the status of the error table and is answered by some route', async (t) => {
  const reachable = new Set(routes.flatMap(([, route]) => errorCodesOf(route)));
  for (const code of Object.keys(hubErrors) as (keyof typeof hubErrors)[]) {
    // These two answer requests that no route took.
    if (code === 'notFound' || code === 'methodNotAllowed') continue;
    t.ok(reachable.has(code), code);
  }
  for (const [name, route] of routes) {
    for (const code of errorCodesOf(route)) {
      t.match(operationOf(route).responses[hubErrors[code].status].description, `\`${code}\``, `${name} ${code}`);
    }
  }
  t.match(operationOf(hubRoutes.ensureAppServer).responses['400'].description, '`workspaceNotFound`', '400 or 404');
});

t.test('specification §6.1: every event kind is described with the keys of specification §2.6', async (t) => {
  const { mapping } = document.components.schemas.HubEvent.discriminator;
  for (const [kind, { meaning }] of Object.entries(hubEventKinds)) {
    t.equal(mapping[kind], `#/components/schemas/Event.${kind}`);
    const schema = document.components.schemas[`Event.${kind}`];
    t.equal(schema.description, meaning);
    t.same(schema.required, ['kind', 'at', 'workspacePath', 'data']);
    t.equal(schema.properties.kind.const, kind);
  }
  const streams = [hubRoutes.streamEvents, hubRoutes.streamInspection].map(
    (route) => operationOf(route).responses['200'].content,
  );
  for (const content of streams) t.same(Object.keys(content), ['text/event-stream']);
});

t.test('every example fits its schema', async (t) => {
  for (const [name, route] of routes) {
    const operation = operationOf(route);
    if (route.request) {
      const { example } = operation.requestBody.content['application/json'];
      t.equal(v.safeParse(hubRequestSchemas[route.request], example).success, true, `request of ${name}`);
    }
    if (route.response.kind !== 'json') continue;
    const { schema, array } = route.response;
    const { example } = operation.responses['200'].content['application/json'];
    // The drawn charts and inspection records have no example: they are long, and the page shows them.
    if (example === undefined) t.equal(schema, 'Chart');
    for (const one of example === undefined ? [] : array ? example : [example]) {
      t.equal(v.safeParse(hubResponseSchemas[schema], one).success, true, `response of ${name}`);
    }
  }
});

t.test('no example shows a secret: tokens and keys are placeholders', async (t) => {
  const text = JSON.stringify(document);
  t.notMatch(text, /token=(?!<)/);
  t.notMatch(text, /"apiKey":"(?!<)/);
  t.notMatch(text, /Bearer [A-Za-z0-9]{8}/);
});
