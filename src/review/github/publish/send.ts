import * as v from 'valibot';
import type { StoredWrite } from '../../store/index.ts';
import { SourceError } from '../errors.ts';
import { sendFileComment, sendReply, sendSummary } from './comments.ts';
import { sendCheckRun, sendReaction, sendResolveThread } from './others.ts';
import {
  CheckRunRequest,
  FileCommentRequest,
  ReactionRequest,
  ReplyRequest,
  ResolveThreadRequest,
  ReviewRequest,
  SummaryRequest,
} from './requests.ts';
import { sendReview } from './review.ts';
import type { Target } from './target.ts';

export type Response = Readonly<Record<string, unknown>>;
type Send = (target: Target, request: Readonly<Record<string, unknown>>) => Promise<Response>;

function kind<const S extends v.GenericSchema>(
  schema: S,
  send: (target: Target, request: v.InferOutput<S>) => Promise<object>,
): Send {
  return async (target, request) => ({ ...(await send(target, requestOf(schema, request))) });
}

function requestOf<const S extends v.GenericSchema>(schema: S, request: unknown): v.InferOutput<S> {
  const parsed = v.safeParse(schema, request);
  if (parsed.success) return parsed.output;
  const where = parsed.issues.map((issue) => v.getDotPath(issue) ?? 'the whole').join(', ');
  throw new SourceError('invalidRequest', `The request to GitHub is invalid at ${where}`);
}

const kinds: Readonly<Record<StoredWrite['kind'], Send>> = {
  review: kind(ReviewRequest, sendReview),
  summary: kind(SummaryRequest, sendSummary),
  checkRun: kind(CheckRunRequest, sendCheckRun),
  resolveThread: kind(ResolveThreadRequest, sendResolveThread),
  reaction: kind(ReactionRequest, sendReaction),
  reply: kind(ReplyRequest, sendReply),
  fileComment: kind(FileCommentRequest, sendFileComment),
};

/** Sends one write of the outbox; a repeated one takes effect once on GitHub. @throws SourceError */
export const sendWrite = (target: Target, write: Pick<StoredWrite, 'kind' | 'request'>): Promise<Response> =>
  kinds[write.kind](target, write.request);

/** Repository of a write. @throws SourceError invalidRequest */
export const repositoryOf = (request: unknown) =>
  requestOf(v.object({ owner: v.pipe(v.string(), v.nonEmpty()), name: v.pipe(v.string(), v.nonEmpty()) }), request);
