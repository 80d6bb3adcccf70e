// For trimtab run pi: gives pi's providers other addresses, and keeps their models and keys.
// TRIMTAB_PI is {provider: address}.

export default (pi) => {
  for (const [name, baseUrl] of Object.entries(JSON.parse(process.env.TRIMTAB_PI)))
    pi.registerProvider(name, { baseUrl });
};
