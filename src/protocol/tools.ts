/** Tools, and the permissions of their calls (design §5a). */
import * as v from 'valibot';
import { QuestionForm } from './questions.ts';

const id = v.pipe(v.string(), v.nonEmpty());

/** `default`: calls that need approval wait for it. `interrupt`: they are declined without a request. */
export const approvalPolicies = ['default', 'autoApprove', 'interrupt'] as const;
export type ApprovalPolicy = (typeof approvalPolicies)[number];

/** `plan`: the agent only reads, and ends with a plan. */
export const turnModes = ['default', 'plan'] as const;
export type TurnMode = (typeof turnModes)[number];

export const approvalKinds = ['file', 'shell', 'remoteResource'] as const;
export type ApprovalKind = (typeof approvalKinds)[number];

/** `cancel` declines and ends the turn. `now` continues a turn that waits for a quota. The grants last: one call, as long as the thread, as long as the workspace. */
export const approvalDecisions = ['accept', 'acceptForSession', 'acceptAlways', 'decline', 'cancel', 'now'] as const;
export type ApprovalDecision = (typeof approvalDecisions)[number];

/** Rule that `acceptAlways` saves: the commands of a tool that begin with these words are allowed in this workspace. */
export const ProposedRule = v.object({ tool: v.string(), prefix: v.array(v.string()) });
export type ProposedRule = v.InferOutput<typeof ProposedRule>;

/** Fields of a request about a turn that waits for a quota. */
export const quotaFields = {
  until: v.pipe(
    v.optional(v.nullable(v.string())),
    v.description(
      'Time of the quota reset that the turn waits for, in ISO 8601; null: unknown. Absent: the request is not about a quota.',
    ),
  ),
  provider: v.pipe(v.optional(v.string()), v.description('Provider or agent whose quota is used up.')),
};

/** A question that waits for a person. It belongs to the thread, not to a connection. */
export const ApprovalRequest = v.object({
  threadId: id,
  turnId: id,
  itemId: id,
  requestId: id,
  callId: id,
  tool: v.string(),
  approvalType: v.picklist(approvalKinds),
  /** E.g. `write`, `run`. */
  operation: v.string(),
  /** The whole path, command or address: other people's text, also with line breaks and control characters. */
  target: v.string(),
  /** Real directory that a command runs in. */
  workingDirectory: v.optional(v.string()),
  /** Key of the scope that `acceptForSession` and `acceptAlways` allow from then on. */
  scopeKey: v.string(),
  /** Scope in words, e.g. `this command in /ws`. */
  covers: v.optional(v.string()),
  reason: v.optional(v.string()),
  diff: v.pipe(
    v.optional(v.string()),
    v.description(
      'Change that the call would make to its file, as a unified diff of limited length. Absent: not known in advance.',
    ),
  ),
  proposedRule: v.optional(ProposedRule),
  asked: v.pipe(v.optional(v.string()), v.description('First words of the message that the turn answers.')),
  question: v.pipe(
    v.optional(QuestionForm),
    v.description('If present, this is a question to answer, not an approval. `target` has its text.'),
  ),
  ...quotaFields,
  createdAt: v.string(),
  /** When it declines itself. */
  expiresAt: v.string(),
});
export type ApprovalRequest = v.InferOutput<typeof ApprovalRequest>;

/** A question that waits for an answer: the fields of an approval request, and the question. */
export const QuestionRequest = v.object({ ...ApprovalRequest.entries, question: QuestionForm });
export type QuestionRequest = v.InferOutput<typeof QuestionRequest>;

const toolName = v.pipe(v.string(), v.regex(/^[a-zA-Z0-9_-]{1,64}$/, '1 to 64 letters, digits, _ or -'));

/** A tool that a client brings and runs itself (`item/tool/call`). */
export const DynamicTool = v.object({
  namespace: v.optional(toolName),
  name: toolName,
  description: v.string(),
  /** JSON Schema of the arguments. */
  inputSchema: v.record(v.string(), v.unknown()),
  approval: v.optional(
    v.object({
      kind: v.picklist(approvalKinds),
      /** Name of the argument that holds the target. */
      targetArgument: v.optional(v.string()),
      operation: v.optional(v.string()),
    }),
  ),
});
export type DynamicTool = v.InferOutput<typeof DynamicTool>;

export const DynamicToolCall = v.object({
  threadId: id,
  turnId: id,
  callId: id,
  namespace: v.optional(v.string()),
  tool: v.string(),
  arguments: v.record(v.string(), v.unknown()),
});
export type DynamicToolCall = v.InferOutput<typeof DynamicToolCall>;

export const DynamicToolResult = v.union([
  v.object({
    success: v.literal(true),
    contentItems: v.array(
      v.variant('type', [
        v.object({ type: v.literal('text'), text: v.string() }),
        v.object({ type: v.literal('image'), url: v.string() }),
      ]),
    ),
    structuredResult: v.optional(v.unknown()),
  }),
  v.object({ success: v.literal(false), errorCode: v.string(), errorMessage: v.string() }),
]);
export type DynamicToolResult = v.InferOutput<typeof DynamicToolResult>;
