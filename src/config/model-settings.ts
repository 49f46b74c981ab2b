/** Settings that select a model: its provider, limits, facts and budget. */
import * as v from 'valibot';
import { isHttpUrl } from '../lib/index.ts';
import { ModelPrice, reasoningEfforts } from '../protocol/index.ts';

/** Kinds of model providers. */
export const providerKinds = ['openai', 'anthropic', 'google', 'openai-compatible', 'demo'] as const;
export type ProviderKind = (typeof providerKinds)[number];

const urlOrEmpty = 'an http or https URL, or an empty string';
const oneOf = (names: readonly string[]): string =>
  `${names
    .slice(0, -1)
    .map((name) => `"${name}"`)
    .join(', ')} or "${names.at(-1)}"`;
const kindNames = oneOf(providerKinds);
const effortNames = oneOf(reasoningEfforts);
const listOfEfforts = 'a list of reasoning efforts';
const tokens = 'a whole number of tokens';
const amount = 'an amount in US dollars, at least 0';
const commandLine = 'a list: a program and its arguments';

export const HttpUrlOrEmpty = v.pipe(
  v.string(urlOrEmpty),
  v.trim(),
  v.check((value) => value === '' || isHttpUrl(value), urlOrEmpty),
);

const ApiKeyCommand = v.pipe(
  v.optional(v.array(v.string(commandLine), commandLine), []),
  v.description('Program and arguments that print the key; used when ApiKey is empty.'),
);

const proxyOrNone = 'an http or https URL, "none", or an empty string';
const ProxyOrNone = v.pipe(
  v.optional(
    v.pipe(
      v.string(proxyOrNone),
      v.trim(),
      v.check((value) => value === '' || value === 'none' || isHttpUrl(value), proxyOrNone),
    ),
    '',
  ),
  v.description(
    'HTTP proxy to the provider, or "none". Empty: HTTPS_PROXY, HTTP_PROXY, ALL_PROXY and NO_PROXY decide.',
  ),
);

const NamedProvider = v.object({
  Kind: v.pipe(
    v.optional(v.picklist(providerKinds, kindNames), 'openai-compatible'),
    v.description('Kind of the provider.'),
  ),
  EndPoint: v.pipe(v.optional(HttpUrlOrEmpty, ''), v.description('Base URL; empty: the usual one of the kind.')),
  ApiKey: v.pipe(v.optional(v.string('a string'), ''), v.description('Key of this provider.')),
  ApiKeyCommand,
  Headers: v.pipe(
    v.optional(v.record(v.string(), v.string('a string')), {}),
    v.description('Further headers of every request; values are secret.'),
  ),
  Proxy: ProxyOrNone,
});
export type NamedProvider = v.InferOutput<typeof NamedProvider>;

const count = (min: number) => v.pipe(v.number(tokens), v.integer(tokens), v.minValue(min, tokens));

const FactsOfModel = v.object({
  ContextWindow: v.optional(count(1_000)),
  MaxOutputTokens: v.optional(count(1)),
  Price: v.pipe(v.optional(ModelPrice), v.description('In US dollars per million tokens.')),
  Efforts: v.optional(v.array(v.picklist(reasoningEfforts, effortNames), listOfEfforts)),
});
export type FactsOfModel = v.InferOutput<typeof FactsOfModel>;

const limit = (description: string) =>
  v.pipe(
    v.optional(v.pipe(v.number(amount), v.minValue(0, amount), v.maxValue(1_000_000, amount)), 0),
    v.description(`${description} US dollars; 0 sets no limit.`),
  );

/** Entries of the top level of the configuration. */
export const modelSettings = {
  Provider: v.pipe(
    v.optional(v.picklist(providerKinds, kindNames)),
    v.description('Kind of the model provider. Default: derived from EndPoint and Model.'),
  ),
  ApiKey: v.pipe(v.optional(v.string('a string'), ''), v.description('Key of the model provider.')),
  ApiKeyCommand,
  Model: v.pipe(
    v.optional(v.string('a string'), ''),
    v.description('Name of the model; NAME/MODEL for one of Providers.'),
  ),
  EndPoint: v.pipe(
    v.optional(HttpUrlOrEmpty, ''),
    v.description('Base URL of the model provider, e.g. https://api.openai.com/v1.'),
  ),
  Proxy: ProxyOrNone,
  Wire: v.pipe(
    v.optional(v.picklist(['auto', 'responses', 'chat'], '"auto", "responses" or "chat"'), 'auto'),
    v.description('Interface of OpenAI that is used; auto: Responses.'),
  ),
  Providers: v.pipe(
    v.optional(v.record(v.pipe(v.string(), v.regex(/^[\w.-]{1,64}$/, 'a short name')), NamedProvider), {}),
    v.description('Further providers by name, for models written as NAME/MODEL.'),
  ),
  FallbackModels: v.pipe(
    v.optional(v.array(v.pipe(v.string(), v.nonEmpty()), 'a list of models'), []),
    v.description('Models, as NAME/MODEL, that continue a turn in this order when its model fails.'),
  ),
  ThoughtTags: v.pipe(
    v.optional(v.boolean('true or false'), true),
    v.description('Shows thoughts that a model server sends as text, e.g. in <think> tags, as reasoning.'),
  ),
  ReasoningEffort: v.pipe(
    v.optional(v.picklist(reasoningEfforts, effortNames)),
    v.description(
      'Time that models spend on reasoning. Default: as the provider does. The nearest that a model has is used.',
    ),
  ),
  MaxOutputTokens: v.pipe(
    v.optional(count(0), 0),
    v.description('Limit of one answer of a model, in tokens, reasoning included; 0: as the provider does.'),
  ),
  Models: v.pipe(
    v.optional(v.record(v.string(), FactsOfModel), {}),
    v.description('Facts of models by name, which override the catalogue.'),
  ),
  Budget: v.optional(
    v.object({
      TurnUsd: limit('Limit of one turn, with its sub-agents.'),
      SessionUsd: limit('Limit of one thread.'),
      DayUsd: limit('Limit of one local day, over all workspaces of this user.'),
    }),
    {},
  ),
};
