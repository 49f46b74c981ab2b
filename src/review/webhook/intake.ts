import { createHash } from 'node:crypto';
import * as v from 'valibot';
import type { Logger } from '../../log/index.ts';
import type { BackendSettings } from '../settings/index.ts';
import { type NewDelivery, type ReviewStore, ReviewStoreError } from '../store/index.ts';
import { type Decision, decide, type IntakeRules, PayloadError, repositoryOf } from './decide.ts';
import { DeliveryPublisher } from './delivery-publisher.ts';
import { limits } from './limits.ts';
import { Envelope, Stamped } from './payloads.ts';
import { rulesOf } from './rules.ts';
import { isSignedBy, parseSignature } from './signature.ts';
import { WrongSignatures } from './wrong-signatures.ts';

/** A request in the form that the intake needs. */
export interface WebhookRequest {
  /** Header by its name in lower case. */
  readonly header: (name: string) => string | undefined;
  readonly remoteAddress: string;
  /** The body in the bytes of the wire; read only when the answer depends on it. */
  readonly bytes: () => Promise<Uint8Array>;
}

export interface WebhookAnswer {
  readonly status: number;
  readonly body: Readonly<Record<string, unknown>>;
  readonly retryAfterSeconds?: number;
}

export interface IntakeOptions {
  /** Current settings. */
  readonly settings: () => BackendSettings;
  readonly store: Pick<ReviewStore, 'takeDelivery' | 'publish'>;
  readonly logger: Logger;
  readonly wrongSignatures?: WrongSignatures;
}

/** Ends the check of a request with an answer. */
class Refusal extends Error {
  override readonly name = 'Refusal';
  readonly answer: WebhookAnswer;

  constructor(status: number, code: string, message: string, retryAfterSeconds?: number) {
    super(message);
    const body = { error: { code, message, details: {} } };
    this.answer = { status, body, ...(retryAfterSeconds !== undefined && { retryAfterSeconds }) };
  }
}

const decoder = new TextDecoder();
const jsonType = /^application\/json\s*(?:;|$)/i;
const deliveryId = /^[A-Za-z0-9-]{1,64}$/;
const eventName = /^[a-z0-9_]{1,64}$/;

/**
 * Takes in GitHub's deliveries. The order is the contract: secret configured, signature valid, and only then any answer that
 * shows how this backend is configured. A delivery answered with 202 is on the disk.
 */
export class WebhookIntake {
  readonly #options: IntakeOptions;
  readonly #wrong: WrongSignatures;
  readonly #deliveries: DeliveryPublisher;
  #inFlight = 0;
  /** Number of responses since the start, by outcome of the delivery. */
  readonly counts = new Map<string, number>();

  constructor(options: IntakeOptions) {
    this.#options = options;
    this.#wrong = options.wrongSignatures ?? new WrongSignatures();
    this.#deliveries = new DeliveryPublisher(options.store, options.logger);
  }

  /** Answers by the table of the webhook. Throws only errors of `request.bytes` (too large, gone) and bugs. */
  async take(request: WebhookRequest): Promise<WebhookAnswer> {
    const answer = await this.#take(request);
    const outcome = answer.status < 300 ? String(answer.body['status']) : 'refused';
    this.counts.set(outcome, (this.counts.get(outcome) ?? 0) + 1);
    return answer;
  }

  async #take(request: WebhookRequest): Promise<WebhookAnswer> {
    try {
      return await this.#judge(request, performance.now());
    } catch (error) {
      if (error instanceof Refusal) return error.answer;
      throw error;
    }
  }

  /** Publishes the events that are still pending. */
  close(): Promise<void> {
    return this.#deliveries.close();
  }

  async #judge(request: WebhookRequest, from: number): Promise<WebhookAnswer> {
    const rules = rulesOf(this.#options.settings());
    const body = await this.#signedBody(request, rules);
    if (this.#inFlight >= limits.inFlight) throw unavailable('Too many deliveries are being taken in.');
    this.#inFlight += 1;
    try {
      return await this.#taken(request, body, rules, from);
    } finally {
      this.#inFlight -= 1;
    }
  }

  async #taken(request: WebhookRequest, body: Uint8Array, rules: IntakeRules, from: number): Promise<WebhookAnswer> {
    if (!jsonType.test(request.header('content-type') ?? ''))
      throw new Refusal(415, 'unsupportedMediaType', 'Set the content type of the webhook to application/json.');
    const payload = parsed(body);
    const event = named(request, 'x-github-event', eventName);
    const id = named(request, 'x-github-delivery', deliveryId);
    if (event === 'ping') return { status: 200, body: { status: 'pong' } };
    const envelope = v.parse(Envelope, payload);
    const decision = decided(event, envelope, payload, rules);
    const delivery: Omit<NewDelivery, 'tookMs'> = {
      deliveryId: id,
      event,
      action: envelope.action ?? null,
      repositoryKey: (envelope.repository && repositoryOf(envelope.repository, rules)) ?? null,
      sender: envelope.sender?.login ?? null,
      digest: v.is(Stamped, payload) ? createHash('sha256').update(`${event}\0`).update(body).digest('hex') : null,
      ...recordOf(decision, id),
    };
    return this.#keep(delivery, decision, from);
  }

  async #signedBody(request: WebhookRequest, { secrets }: IntakeRules): Promise<Uint8Array> {
    if (secrets.length === 0)
      throw new Refusal(503, 'githubWebhookSecretRequired', 'This backend has no webhook secret: it takes nothing in.');
    const given = parseSignature(request.header('x-hub-signature-256'));
    if (given) {
      const body = await request.bytes();
      if (isSignedBy(secrets, body, given)) return body;
    }
    const retryAfter = this.#wrong.count(request.remoteAddress);
    if (retryAfter !== undefined)
      throw new Refusal(429, 'tooManyInvalidSignatures', 'Too many deliveries with a wrong signature.', retryAfter);
    this.#options.logger.warn('a delivery with a wrong signature was refused', { from: request.remoteAddress });
    throw new Refusal(403, 'invalidSignature', 'X-Hub-Signature-256 is missing or wrong.');
  }

  async #keep(delivery: Omit<NewDelivery, 'tookMs'>, decision: Decision, from: number): Promise<WebhookAnswer> {
    const { deliveryId, event, outcome } = delivery;
    let taken: 'new' | 'duplicate';
    try {
      taken = await this.#options.store.takeDelivery({ ...delivery, tookMs: performance.now() - from });
    } catch (error) {
      if (!(error instanceof ReviewStoreError)) throw error;
      const level = error.isOutage ? 'debug' : 'error';
      this.#options.logger[level]('could not store a delivery', { deliveryId, event, code: error.code, error });
      throw unavailable('The delivery cannot be stored at the moment.');
    }
    if (taken === 'duplicate') return { status: 200, body: { status: 'duplicate', deliveryId } };
    this.#deliveries.add({ deliveryId, event, outcome });
    return { status: 202, body: { ...bodyOf(decision), deliveryId } };
  }
}

const unavailable = (message: string) => new Refusal(503, 'intakeUnavailable', message, limits.retryAfterSeconds);

/** Skips a byte order mark and replaces bytes that are not UTF-8: the signature says that GitHub meant them. */
function parsed(body: Uint8Array): unknown {
  let payload: unknown;
  try {
    payload = JSON.parse(decoder.decode(body));
  } catch {
    throw new Refusal(400, 'invalidPayload', 'The body is not JSON.');
  }
  if (typeof payload !== 'object' || payload === null || Array.isArray(payload))
    throw new Refusal(400, 'invalidPayload', 'The payload must be a JSON object.');
  return payload;
}

function named(request: WebhookRequest, name: string, shape: RegExp): string {
  const value = request.header(name);
  if (value === undefined || !shape.test(value))
    throw new Refusal(400, 'missingHeader', `The header ${name} is missing or malformed.`);
  return value;
}

function decided(event: string, envelope: Envelope, payload: unknown, rules: IntakeRules): Decision {
  try {
    return decide(event, envelope, payload, rules);
  } catch (error) {
    if (error instanceof PayloadError) throw new Refusal(400, 'invalidPayload', error.message);
    throw error;
  }
}

/** Stored form of a decision. */
function recordOf(
  decision: Decision,
  deliveryId: string,
): Pick<NewDelivery, 'outcome' | 'reason' | 'number' | 'job' | 'command'> {
  switch (decision.kind) {
    case 'ignored':
      return { outcome: 'ignored', reason: decision.reason, number: null, job: null, command: null };
    case 'queued':
      return { outcome: 'queued', reason: null, ...pick(decision, deliveryId) };
    case 'rejected':
      return { outcome: 'rejected', reason: decision.errorCode, ...pick(decision, deliveryId) };
  }
}

/** Links the job with its delivery: its worker records the outcome there. */
const pick = ({ number, job, command }: Exclude<Decision, { kind: 'ignored' }>, deliveryId: string) => ({
  number,
  job: job && { ...job, payload: { ...job.payload, deliveryId } },
  command,
});

/** Body of the answer, which GitHub shows in its log of deliveries. */
function bodyOf(decision: Decision): Readonly<Record<string, unknown>> {
  switch (decision.kind) {
    case 'ignored':
      return { status: 'ignored', reason: decision.reason };
    case 'queued':
      return { status: 'queued', ...(decision.command && { commandId: decision.command.commentId }) };
    case 'rejected':
      return { status: 'rejected', errorCode: decision.errorCode };
  }
}
