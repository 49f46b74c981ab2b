/** Elicitation requests of external agents (ACP) and MCP servers: the same members in both protocols. */
import * as v from 'valibot';
import { FormSchema, type QuestionForm, type QuestionSource, QuestionUrl } from './questions.ts';

const Elicitation = v.object({
  mode: v.nullish(v.string()),
  message: v.optional(v.string(), ''),
  requestedSchema: v.nullish(v.unknown()),
  url: v.nullish(v.unknown()),
});

const messageChars = 4_000;
/** Longest schema of a form, as JSON: a larger one is refused unread. */
const schemaChars = 65_536;

/** A question, or the reason for refusing the request, as a sentence for its author. */
export type ReadElicitation =
  | { readonly ok: true; readonly form: QuestionForm }
  | { readonly ok: false; readonly problem: string };

/** Reads a request for a form or a link. Its schema is untrusted: it must be small and flat, and its patterns never run. */
export function readElicitation(params: unknown, source: QuestionSource, from: string): ReadElicitation {
  const refuse = (problem: string) => ({ ok: false, problem }) as const;
  const read = v.safeParse(Elicitation, params);
  if (!read.success) return refuse('The request is malformed.');
  const { mode, message, requestedSchema, url } = read.output;
  const about = { source, from, message: message.slice(0, messageChars) };
  if (mode === 'url') {
    const link = v.safeParse(QuestionUrl, url);
    if (link.success) return { ok: true, form: { ...about, url: link.output } };
    return refuse(`url: expected ${link.issues[0].message}.`);
  }
  if (mode !== undefined && mode !== null && mode !== 'form') return refuse('The mode must be form or url.');
  const size = sizeOf(requestedSchema);
  if (size > schemaChars) return refuse(`The schema is too large or too deep: at most ${schemaChars} characters.`);
  const schema = v.safeParse(FormSchema, requestedSchema);
  if (schema.success) return { ok: true, form: { ...about, schema: schema.output } };
  const [issue] = schema.issues;
  return refuse(
    `requestedSchema ${v.getDotPath(issue) ?? ''}: expected ${issue.type === 'check' ? issue.message : (issue.expected ?? 'another value')}.`,
  );
}

/** Length as JSON; infinite for a value that cannot be serialised, such as a too deeply nested one. */
function sizeOf(value: unknown): number {
  try {
    return JSON.stringify(value)?.length ?? 0;
  } catch {
    return Number.POSITIVE_INFINITY;
  }
}
