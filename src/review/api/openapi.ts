import { type JsonSchema, toJsonSchemaDefs } from '@valibot/to-json-schema';
import type * as v from 'valibot';
import { reviewEventKinds } from '../../protocol/index.ts';
import { type ReviewErrorCode, reviewErrors } from '../errors.ts';
import { errorCodesOf, type QueryParameter, type ReviewRoute, reviewRoutes } from './route-table.ts';
import { requestSchemas, responseSchemas } from './shapes.ts';

/** A JSON object of the document; its shape is OpenAPI's and is checked by the tests. */
export type OpenApiObject = { readonly [key: string]: unknown };
type AnySchema = v.BaseSchema<unknown, unknown, v.BaseIssue<unknown>>;

const reference = (name: string) => ({ $ref: `#/components/schemas/${name}` });

function jsonSchemas(definitions: Readonly<Record<string, AnySchema>>, typeMode: 'input' | 'output') {
  return toJsonSchemaDefs(definitions, {
    target: 'draft-2020-12',
    typeMode,
    // Transformations such as `trim` are not part of the shape.
    ignoreActions: ['trim'],
    overrideRef: ({ referenceId }) => reference(referenceId).$ref,
    overrideSchema: ({ valibotSchema }): JsonSchema | undefined =>
      valibotSchema.type === 'date' ? { type: 'string', format: 'date-time' } : undefined,
  });
}

function success({ response, headers }: ReviewRoute): OpenApiObject {
  const hasVersion = headers?.some(({ name }) => name === 'If-Match') === true;
  const withTag = hasVersion && {
    headers: { ETag: { description: 'Version of the resource.', schema: { type: 'string' } } },
  };
  switch (response.kind) {
    case 'json': {
      const one = reference(response.schema);
      const schema = response.array ? { type: 'array', items: one } : one;
      return { description: 'Done.', ...withTag, content: { 'application/json': { schema } } };
    }
    case 'document':
      return { description: 'The document.', content: { 'application/json': { schema: { type: 'object' } } } };
    case 'metrics':
      return { description: 'The metrics.', content: { 'text/plain': { schema: { type: 'string' } } } };
    case 'inspection':
      return {
        description: 'Server-Sent Events: one record each, named by its type; see `docs/inspector.md`.',
        content: { 'text/event-stream': { schema: { type: 'string' } } },
      };
    case 'events':
      return {
        description: `Server-Sent Events: \`id\`, \`event\` (the kind) and \`data\`. Kinds: ${reviewEventKinds.join(', ')}; \`stream.gap\` reports missed events.`,
        content: { 'text/event-stream': { schema: reference('ReviewEvent') } },
      };
  }
}

function failures(route: ReviewRoute): OpenApiObject {
  const codesByStatus = new Map<number, ReviewErrorCode[]>();
  for (const code of errorCodesOf(route)) {
    const { status } = reviewErrors[code];
    codesByStatus.set(status, [...(codesByStatus.get(status) ?? []), code]);
  }
  return Object.fromEntries(
    [...codesByStatus].map(([status, codes]) => [
      String(status),
      {
        description: codes.map((code) => `\`${code}\`: ${reviewErrors[code].when}`).join('\n\n'),
        content: { 'application/json': { schema: reference('ReviewError') } },
      },
    ]),
  );
}

const parameter = (
  place: 'query' | 'header' | 'path',
  required: boolean,
  { name, description, values }: QueryParameter,
) => ({
  name,
  in: place,
  required,
  description,
  schema: { type: 'string', ...(values && { enum: values }) },
});

function operation(operationId: string, route: ReviewRoute): OpenApiObject {
  const inPath = [...route.path.matchAll(/:(\w+)/g)].map(([, name = '']) => ({
    name,
    description: 'Identifier of the resource.',
  }));
  const parameters = [
    ...inPath.map((each) => parameter('path', true, each)),
    ...(route.query ?? []).map((each) => parameter('query', false, each)),
    ...(route.headers ?? []).map((each) => parameter('header', each.required, each)),
  ];
  return {
    operationId,
    summary: route.summary,
    security: route.auth === 'token' ? [{ serviceToken: [] }] : [],
    ...(parameters.length > 0 && { parameters }),
    ...(route.request && {
      requestBody: { required: true, content: { 'application/json': { schema: reference(route.request) } } },
    }),
    responses: { [String(route.status)]: success(route), ...failures(route) },
  };
}

/**
 * Generates the OpenAPI 3.1 document of the API from the route table and the wire schemas.
 *
 * @param version of the backend
 */
export function reviewOpenApi(version: string): OpenApiObject {
  const paths: Record<string, Record<string, OpenApiObject>> = {};
  for (const [operationId, route] of Object.entries<ReviewRoute>(reviewRoutes)) {
    const path = route.path.replace(/:(\w+)/g, '{$1}');
    paths[path] = { ...paths[path], [route.method.toLowerCase()]: operation(operationId, route) };
  }
  return {
    openapi: '3.1.0',
    info: {
      title: 'Oratorio review backend',
      version,
      description: 'Unattended review of pull requests.',
      license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
    },
    servers: [{ url: '/' }],
    paths,
    components: {
      securitySchemes: {
        serviceToken: { type: 'http', scheme: 'bearer', description: 'The service token of the backend.' },
      },
      schemas: { ...jsonSchemas(requestSchemas, 'input'), ...jsonSchemas(responseSchemas, 'output') },
    },
  };
}
