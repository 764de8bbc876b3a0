// Shows the description of the API with the viewer that the service ships: nothing is fetched from elsewhere.
SwaggerUIBundle({ url: "openapi.json", dom_id: "#docs", deepLinking: true, validatorUrl: null });
