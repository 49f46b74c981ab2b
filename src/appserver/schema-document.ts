import { type JsonSchema, toJsonSchemaDefs } from '@valibot/to-json-schema';
import type * as v from 'valibot';
import {
  ApprovalRequest,
  Automation,
  AutomationRun,
  clientNotifications,
  DynamicTool,
  Identity,
  InputPart,
  Item,
  McpServerConfig,
  McpServerStatus,
  protocolVersion,
  QueuedInput,
  rpcErrors,
  rpcMethods,
  rpcNotifications,
  Schedule,
  serverRequests,
  Thread,
  ThreadBinding,
  ThreadConfig,
  ThreadSummary,
  TokenUsage,
  Turn,
  version,
} from '../protocol/index.ts';

type AnySchema = v.BaseSchema<unknown, unknown, v.BaseIssue<unknown>>;
type Json = Readonly<Record<string, unknown>>;

/** Shapes that others are made of; each is written down once. */
const named: Readonly<Record<string, AnySchema>> = {
  ApprovalRequest,
  Automation,
  AutomationRun,
  DynamicTool,
  Identity,
  InputPart,
  Item,
  McpServerConfig,
  McpServerStatus,
  QueuedInput,
  Schedule,
  Thread,
  ThreadBinding,
  ThreadConfig,
  ThreadSummary,
  TokenUsage,
  Turn,
};

function schemasOf(definitions: Readonly<Record<string, AnySchema>>, typeMode: 'input' | 'output') {
  return toJsonSchemaDefs(
    { ...named, ...definitions },
    {
      typeMode,
      ignoreActions: ['trim', 'check', 'transform'],
      overrideRef: ({ referenceId }) => `#/components/schemas/${referenceId}`,
    },
  ) as Readonly<Record<string, JsonSchema>>;
}

function objectOf(schema: JsonSchema | undefined): {
  properties: Readonly<Record<string, JsonSchema>>;
  required: readonly string[];
} {
  const { properties = {}, required = [] } = (schema ?? {}) as {
    properties?: Record<string, JsonSchema>;
    required?: string[];
  };
  return { properties, required };
}

/** OpenRPC lists parameters one by one; here they are always passed by name. */
function paramsOf(schema: JsonSchema | undefined): Json[] {
  const { properties, required } = objectOf(schema);
  return Object.entries(properties).map(([name, property]) => ({
    name,
    required: required.includes(name),
    schema: property,
  }));
}

function methods(): Json[] {
  const inputs = schemasOf(
    Object.fromEntries(Object.entries(rpcMethods).map(([name, { params }]) => [name, params])),
    'input',
  );
  const outputs = schemasOf(
    Object.fromEntries(Object.entries(rpcMethods).map(([name, { result }]) => [name, result])),
    'output',
  );
  return Object.entries(rpcMethods).map(([name, { summary }]) => ({
    name,
    summary,
    paramStructure: 'by-name',
    params: paramsOf(inputs[name]),
    result: { name: 'result', schema: outputs[name] },
  }));
}

/** Messages of the server: OpenRPC has no word for them, so they are extensions. */
function fromServer(): Json {
  const notifications = schemasOf(rpcNotifications, 'output');
  const asked = schemasOf(
    Object.fromEntries(Object.entries(serverRequests).map(([name, { params }]) => [name, params])),
    'output',
  );
  const answered = schemasOf(
    Object.fromEntries(Object.entries(serverRequests).map(([name, { result }]) => [name, result])),
    'input',
  );
  return {
    'x-notifications': Object.keys(rpcNotifications).map((name) => ({ name, params: paramsOf(notifications[name]) })),
    'x-server-requests': Object.keys(serverRequests).map((name) => ({
      name,
      params: paramsOf(asked[name]),
      result: { name: 'result', schema: answered[name] },
    })),
    'x-client-notifications': Object.keys(clientNotifications).map((name) => ({ name, params: [] })),
  };
}

/** The protocol of the agent server as an OpenRPC document (https://spec.open-rpc.org), made from the schemas that validate it. */
export function protocolDocument(): Json {
  const shapes = schemasOf({}, 'output');
  return {
    openrpc: '1.3.2',
    info: {
      title: 'Oratorio agent server',
      version,
      'x-protocol-version': protocolVersion,
      description:
        'JSON-RPC 2.0, one message per text frame of the WebSocket, or per line on standard input and output.',
    },
    methods: methods(),
    ...fromServer(),
    'x-errors': Object.entries(rpcErrors).map(([name, { code, message, when }]) => ({ name, code, message, when })),
    components: { schemas: Object.fromEntries(Object.keys(named).map((name) => [name, shapes[name]])) },
  };
}
