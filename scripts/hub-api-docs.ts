import { hubOpenApi } from '../src/hub/openapi.ts';
import { errorCodesOf, type HubRoute, hubRoutes } from '../src/hub/route-table.ts';
import { defaults, hubErrors, hubEventKinds } from '../src/protocol/index.ts';
import { anchor, cell, fieldRows, fieldTable, link, type Shape } from './shape-docs.ts';

/** The shapes a person reads of; those of the inspection stream are for programs and are in the OpenAPI document. */
function shapesSection(schemas: Readonly<Record<string, Shape>>): string[] {
  return Object.entries(schemas)
    .filter(([name]) => !name.startsWith('Event.'))
    .flatMap(([name, shape]) => {
      const variants = shape.oneOf ?? shape.anyOf;
      const alternatives = name === 'HubEvent' ? ['See [Events](#events).', ''] : (variants ?? []).flatMap(fieldTable);
      return [
        `### ${name}`,
        '',
        ...(shape.description ? [shape.description, ''] : []),
        ...(variants ? alternatives : fieldTable(shape)),
      ];
    });
}

function answerOf({ response }: HubRoute): string {
  switch (response.kind) {
    case 'json':
      return `${response.array ? 'array of ' : ''}${link(response.schema)}`;
    case 'events':
      return `event stream of ${link(response.of === 'hub' ? 'HubEvent' : 'SuperJsonInspectionRecord')}`;
    case 'text':
      return `\`${response.contentType}\`. ${response.description}`;
    case 'document':
      return response.description;
  }
}

/** `bearer token, or the page token, or the token of a host` */
function authenticationOf({ auth, isForPage, isForHost }: HubRoute): string {
  if (!auth) return 'none';
  return `bearer token${isForPage ? ', or the page token' : ''}${isForHost ? ', or the token of a host' : ''}`;
}

function routeSection(route: HubRoute): string[] {
  const parameters = [
    ...(route.params ?? []).map((each) => ({ ...each, place: 'path' })),
    ...(route.query ?? []).map((each) => ({ ...each, place: 'query' })),
    ...(route.headers ?? []).map((each) => ({ ...each, place: 'header' })),
  ];
  const rows = parameters.map(({ name, place, required, description, values }) => {
    const allowed = values ? ` One of ${values.map((value) => `\`${value}\``).join(', ')}.` : '';
    return `| \`${name}\` | ${place} | ${required ? '' : 'optional'} | ${cell(description)}${allowed} |`;
  });
  return [
    `### ${route.method} ${route.path}`,
    '',
    route.summary,
    '',
    ...(rows.length > 0 ? ['| Parameter | In | | Meaning |', '|---|---|---|---|', ...rows, ''] : []),
    `- Authentication: ${authenticationOf(route)}`,
    ...(route.request ? [`- Request: ${link(route.request)}`] : []),
    `- Response: ${answerOf(route)}`,
    `- Errors: ${errorCodesOf(route)
      .map((code) => `\`${code}\``)
      .join(', ')}`,
    `- Deadline: ${route.deadlineMs > 0 ? `${route.deadlineMs / 1000} s` : 'none, it stays open'}`,
    '',
  ];
}

/** `workspaceNotFound` has two statuses (specification §7.1). */
const statusOf = (code: string, status: number): string =>
  code === 'workspaceNotFound' ? '400 or 404' : String(status);

function errorsTable(): string[] {
  const rows = Object.entries(hubErrors).map(
    ([code, { status, when }]) => `| \`${code}\` | ${statusOf(code, status)} | ${cell(when)} |`,
  );
  return ['| Code | Status | When |', '|---|---|---|', ...rows, ''];
}

function eventSections(schemas: Readonly<Record<string, Shape>>): string[] {
  return Object.entries(hubEventKinds).flatMap(([kind, { meaning }]) => {
    const data = schemas[`Event.${kind}`]?.properties?.['data'] ?? {};
    return [
      `### ${kind}`,
      '',
      meaning,
      '',
      '| `data` | Type | | Meaning |',
      '|---|---|---|---|',
      ...fieldRows(data),
      '',
    ];
  });
}

/** `headerBytes: 16384` and its like, of the groups that a client of the Hub meets. */
function limitsTable(): string[] {
  const groups = { http: defaults.http, sse: defaults.sse, supervise: defaults.supervise, apiProxy: defaults.apiProxy };
  const rows = Object.entries(groups).flatMap(([group, values]) =>
    Object.entries(values).map(([name, value]) => {
      const unit = /Ms$/.test(name)
        ? 'milliseconds'
        : /Bytes$/.test(name)
          ? 'bytes'
          : /Seconds$/.test(name)
            ? 'seconds'
            : '';
      return `| \`${group}.${name}\` | ${value.toLocaleString('en')} | ${unit} |`;
    }),
  );
  return ['| Name | Value | Unit |', '|---|---|---|', ...rows, ''];
}

/** `docs/hub-api.md`: the Hub API for people, from the same tables as the server and the OpenAPI document. */
export function hubApiDocument(): string {
  const { components } = hubOpenApi('0', 'http://127.0.0.1') as {
    readonly components: { readonly schemas: Readonly<Record<string, Shape>> };
  };
  const routes: HubRoute[] = Object.values(hubRoutes);
  const overview = routes.map(
    (route) =>
      `| [${route.method} ${route.path}](#${anchor(`${route.method} ${route.path}`)}) | ${route.auth ? 'yes' : 'no'} | ${cell(route.summary)} |`,
  );
  return [
    '<!-- Generated by "npm run docs" from src/protocol and src/hub/route-table.ts. Do not edit. -->',
    '# Hub API',
    '',
    'The Hub listens on a loopback address that it publishes in `hub.lock`, together with the bearer token that every route',
    'but `GET /v1/status` asks for. `GET /v1/openapi.json` is this page for programs. Ignore fields, event kinds, services',
    'and service states that you do not know: more may come.',
    '',
    '## Routes',
    '',
    '| Route | Token | |',
    '|---|---|---|',
    ...overview,
    '',
    ...routes.flatMap(routeSection),
    '## Page token',
    '',
    'The page in a browser holds the token of `hub/page.token`, not that of the Hub. It opens these routes and no others:',
    '',
    ...routes.filter(({ isForPage }) => isForPage).map(({ method, path }) => `- \`${method} ${path}\``),
    '',
    'With it, `ensure` and `restart` refuse an `apiProxy` (403 `scopeMissing`): a sidecar may be any program of the user. `ensure`',
    'refuses a `place`, too. Answers and event streams show `***` instead of the tokens of other servers. The page token can neither stop the Hub nor issue tokens. Below',
    '`/w/{workspaceId}/` the Hub forwards requests and WebSockets of the page to the agent server of the workspace.',
    '',
    '## Token of a host',
    '',
    'Another Hub of the same user ([hosts](hosts.md)) holds a token of the scope `host`, which `oratorio hub address --json` issues. It',
    'opens these routes and no others, with the limits of the page token:',
    '',
    ...routes.filter(({ isForHost }) => isForHost).map(({ method, path }) => `- \`${method} ${path}\``),
    '',
    '## Events',
    '',
    'Each event has an `id`, an `event` line with its kind and a `data` line with a JSON object of four keys: `kind`, `at`',
    '(ISO 8601), `workspacePath` (null when it concerns none) and `data`, which depends on the kind. Send the last id you saw',
    'as `Last-Event-ID` (or `?lastEventId=`) and the stream resumes after it; `hub.gap` comes first when something was lost.',
    '',
    ...eventSections(components.schemas),
    '## Errors',
    '',
    `Every error is a ${link('HubError')}.`,
    '',
    ...errorsTable(),
    '## Shapes',
    '',
    ...shapesSection(components.schemas),
    '## Limits and timeouts',
    '',
    'Those of `supervise` that a workspace may set for itself are in its `config.json` under `Supervision`.',
    '',
    ...limitsTable(),
  ].join('\n');
}
