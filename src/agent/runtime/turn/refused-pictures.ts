import { refusedPicture } from '../../history.ts';
import type { ContentPart, ModelError, ModelMessage } from '../../model.ts';

/** Statuses of services for a request with a part that they do not take. */
const refusingStatuses: ReadonlySet<number> = new Set([400, 413, 415, 422]);
/** Words of services for a picture that they do not take; models without pictures answer with other statuses, too. */
const pictureWords = /\bimages?\b|image_url|inline_?data|picture|vision|multimodal|media[ _-]?type|\bmime\b/i;

type Conversation = readonly ModelMessage[];

/** Pictures of one turn's conversation that the service refuses although they are in order. */
export class RefusedPictures {
  /** Items of messages whose pictures were left out. */
  readonly #itemIds = new Set<string>();
  #isPending = false;

  get itemIds(): ReadonlySet<string> {
    return this.#itemIds;
  }

  /**
   * Leaves out the pictures since the last answer, which are the only ones that the service has not accepted before; without one,
   * all pictures.
   * @returns undefined: the refusal does not concern pictures, or the conversation lacks them
   */
  leaveOut(
    error: ModelError,
    messages: Conversation,
  ): { readonly messages: ModelMessage[]; readonly count: number } | undefined {
    if (!mayConcernPictures(error)) return undefined;
    const lastAnswer = messages.findLastIndex(({ role }) => role === 'assistant');
    const isNew = messages.slice(lastAnswer + 1).some(hasPicture);
    const from = isNew ? lastAnswer + 1 : 0;
    const affected = messages.slice(from).filter(hasPicture);
    if (affected.length === 0) return undefined;
    for (const message of affected) {
      if (message.role === 'user' && message.itemId !== undefined) this.#itemIds.add(message.itemId);
    }
    this.#isPending = true;
    return {
      messages: messages.map((message, index) => (index < from ? message : withoutPictures(message))),
      count: affected.reduce((sum, message) => sum + picturesOf(message).length, 0),
    };
  }

  /** The service has answered a request without them. @returns items whose pictures were the cause, once */
  confirm(): readonly string[] {
    const caused = this.#isPending ? [...this.#itemIds] : [];
    this.#isPending = false;
    return caused;
  }
}

function mayConcernPictures({ code, status, message }: ModelError): boolean {
  if (code === 'contextTooLong') return status === 413;
  const isRefusal = code === 'upstreamRejected' && status !== undefined && refusingStatuses.has(status);
  return isRefusal || ((code === 'upstreamRejected' || code === 'upstreamFailed') && pictureWords.test(message));
}

function picturesOf(message: ModelMessage): readonly ContentPart[] {
  return 'content' in message ? message.content.filter(({ type }) => type === 'image') : [];
}

const hasPicture = (message: ModelMessage): boolean => picturesOf(message).length > 0;

function withoutPictures(message: ModelMessage): ModelMessage {
  if (!hasPicture(message) || !('content' in message)) return message;
  return { ...message, content: message.content.map((part) => (part.type === 'image' ? refusedPicture : part)) };
}
