import manifest from '../../package.json' with { type: 'json' };

/** Version of the product: of the Hub, of its agent server, of the SDK. */
export const version: string = manifest.version;
