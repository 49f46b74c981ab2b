import { useState } from 'preact/hooks';

/** Pictures that may be shown: data in the message, of a format that cannot contain a program. */
const shownAddress = /^data:image\/(?:png|jpeg|gif|webp);base64,[A-Za-z0-9+/=]+$/;

/** Picture of a user's message. The page does not fetch other addresses, because their servers would notice. */
export function Picture({ url }: { readonly url: string }) {
  const [isBroken, setBroken] = useState(!shownAddress.test(url));
  if (isBroken) return <p class="quiet">Picture (it cannot be shown)</p>;
  return <img class="picture" src={url} alt="Sent" onError={() => setBroken(true)} />;
}
