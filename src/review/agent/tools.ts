import { toJsonSchema } from '@valibot/to-json-schema';
import type { GenericSchema } from 'valibot';
import { type DynamicTool, ResolvedFinding, SubmittedDraft } from '../../protocol/index.ts';

export const submitTool = 'SubmitReviewDraft';
export const resolveTool = 'ResolveReviewFinding';

/** The built-in tools that a review may use: those that read files of the worktree. No shell, no network, no sub-agents. */
export const readingTools = ['ReadFile', 'GrepFiles', 'FindFiles'] as const;

/** Tools of a review. The agent server asks us to run them (`item/tool/call`). */
export function reviewTools(): DynamicTool[] {
  return [
    {
      name: submitTool,
      description:
        'Hands in the review: the summary and all findings. oldText places each finding at its lines; a finding that cannot be placed is reported at once, and then the whole draft is handed in again, corrected. The last one handed in counts. A change without fault is handed in with no findings.',
      inputSchema: schemaOf(SubmittedDraft),
    },
    {
      name: resolveTool,
      description:
        'Ends an open finding of an earlier review: "fixed" when the change no longer has the fault, "dismissed" when it turned out to be none. Only ids of the list of open findings. Findings that still hold are left alone.',
      inputSchema: schemaOf(ResolvedFinding),
    },
  ];
}

function schemaOf(schema: GenericSchema): Record<string, unknown> {
  const { $schema: _, ...plain } = toJsonSchema(schema, { typeMode: 'input', errorMode: 'ignore' });
  return plain;
}
