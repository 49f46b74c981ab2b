/**
 * Intake of GitHub's deliveries: signature, the table of answers, the consequence of each event, the grammar of mention
 * commands and their permitted authors. Called by the backend (`webhookRoute`) and by the work on commands (`decideCommand`).
 * Never here: a call to GitHub, the work that a delivery causes, state that is not stored before the answer.
 */
export { DeliveryGate, type GateLimits } from './body-gate.ts';
export { ClientAddresses } from './client-address.ts';
export { type Command, type CommandVerb, commandVerbs, type ParsedCommand, parseCommand } from './command.ts';
export { type Decision, decide, type IntakeRules, PayloadError } from './decide.ts';
export { type DeliveryEvent, DeliveryPublisher } from './delivery-publisher.ts';
export {
  type CommandFacts,
  type CommandRejection,
  decideCommand,
  type Eligibility,
  judgeCommand,
} from './eligibility.ts';
export { type IntakeOptions, type WebhookAnswer, WebhookIntake, type WebhookRequest } from './intake.ts';
export { type WebhookRouteOptions, webhookPath, webhookRoute } from './route.ts';
export { rulesOf } from './rules.ts';
export { isSignedBy, parseSignature } from './signature.ts';
export { WrongSignatures } from './wrong-signatures.ts';
